"Asking the person a question in words, through ctx.permission."

(eval-when-compile (require quoth.tools.macros [def-cognitive-tool]))

(defn :async ask-in-words [question choices only ctx]
  (import quoth.tools.call.question [asked])
  (await (.ask ctx.permission (asked question choices only))))

(def-cognitive-tool ask-person
  "Ask the user something only they know, and get the answer. Not for permission: just call the tool."
  :parameters [question {:type str}
               choices  {:type (| (get list str) None)  :default None  :doc "2 to 9 answers to choose from"}
               only     {:type bool  :default False  :hidden True}]
  :effects    [:asks]
  :asks-first True
  :examples   [(ask-person :question "Which port should it listen on?" :choices ["8080" "9090"])]
  :body       (await (ask-in-words question choices only ctx)))
