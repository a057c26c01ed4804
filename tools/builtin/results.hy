"Shows the rest of results that were too long, page by page, from ctx.pages."

(eval-when-compile (require quoth.tools.macros [def-cognitive-tool]))
(import quoth.tools.errors [ToolError])

(defn page [id start ctx]
  "The page unchanged, so that a program can join pages; its range is a message beside it."
  (when (is ctx.pages None)
    (raise (ToolError "This session keeps no long results.")))
  (setv [part where] (.page ctx.pages id start))
  (.say ctx where)
  part)

(def-cognitive-tool more
  "Show more of a result that was cut."
  :parameters [id    {:type str  :doc "The id in the cut result"}
               start {:type int  :doc "First character"  :default 1  :min 1}]
  :effects    [:reads]
  :free-text  True
  :body       (page id start ctx))
