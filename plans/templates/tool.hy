"Your own tools. To test them: quoth tools test my-name.hy. To use them: quoth run TASK --tools my-name.hy"

(require quoth [def-cognitive-tool])
(import quoth [inside-workspace])

;; A tool is one form. A model sees only its name, this description, the parameters and the examples.
(def-cognitive-tool my-name
  "Count the words of a text file with at least a given length."
  ;; Each parameter has a type (str int float bool path list dict form) and a :doc. With a :default it is optional.
  ;; Use path, not str, for a file or folder: a path must stay inside the workspace, and rules see where it leads.
  :parameters [path    {:type path  :doc "Which file"}
               longer  {:type int   :doc "Minimum number of letters of a word"  :default 1  :min 1}]
  ;; The effects of the tool: :reads :writes :runs :net :memory :messages. quoth asks first, except for :reads.
  :effects    [:reads]
  ;; The guard checks the arguments before the body runs. It returns True, False, (deny "why") or (ask "why").
  :guard      (inside-workspace path)
  ;; The model reads these calls, and quoth tools test runs them in a copy of the folder.
  :examples   [(my-name :path "my-name.hy")
               (my-name :path "my-name.hy" :longer 8)]
  ;; The body returns a text, a number, a list or a dictionary. The model receives its errors as a sentence.
  :body       (do
                (with [file (.open-read ctx.workspace path)]
                  (setv words (.split (.decode (.read file)))))
                (sum (gfor  word words  (>= (len word) longer)))))
