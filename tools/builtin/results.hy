"The rest of what was too long to be shown whole, page by page.
Must not know where texts are kept: they are behind ctx.pages."

(eval-when-compile (require quoth.tools.macros [def-cognitive-tool]))
(import quoth.tools.errors [ToolError])

(defn page [id start ctx]
  "The page as it is, so that a program can put pages together; which page it is goes beside it."
  (when (is ctx.pages None)
    (raise (ToolError "No texts are kept here.")))
  (setv [part where] (.page ctx.pages id start))
  (.say ctx where)
  part)

(def-cognitive-tool more
  "Show more of a result of which a part was left out."
  :parameters [id    {:type str  :doc "As it stands there"}
               start {:type int  :doc "First character"  :default 1  :min 1}]
  :effects    [:reads]
  :free-text  True
  :body       (page id start ctx))
