"Tools of your own. To try them: quoth tools test my-name.hy. To use them: quoth run TASK --tools my-name.hy"

(require quoth [def-cognitive-tool])
(import quoth [inside-workspace])

;; A tool is one form. A model is shown its name, these words, the parameters and the examples, and no more.
(def-cognitive-tool my-name
  "Count the words of a text file that are at least so long."
  ;; Each parameter has a type (str int float bool path list dict form) and words. With a default it may be left out.
  ;; A file or folder is a path, never a str: a path is kept inside the workspace, and rules see where it leads.
  :parameters [path    {:type path  :doc "Which file"}
               longer  {:type int   :doc "Count words from so many letters on"  :default 1  :min 1}]
  ;; What it does to the world: :reads :writes :runs :net :memory :messages. All but reading is asked first.
  :effects    [:reads]
  ;; The guard sees the arguments before the body does: True, False, (deny "why") or (ask "why").
  :guard      (inside-workspace path)
  ;; The model reads these calls, and quoth tools test makes them in a copy of the folder.
  :examples   [(my-name :path "my-name.hy")
               (my-name :path "my-name.hy" :longer 8)]
  ;; The body gives a text, a number, a list or a dictionary. An error it raises is told to the model in a sentence.
  :body       (do
                (with [file (.open-read ctx.workspace path)]
                  (setv words (.split (.decode (.read file)))))
                (sum (gfor  word words  (>= (len word) longer)))))
