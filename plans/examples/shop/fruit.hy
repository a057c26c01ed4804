(require quoth [def-cognitive-tool])
(import quoth [inside-workspace])

(def-cognitive-tool count-fruit
  "Say how many pieces of a fruit are in a stock file."
  :parameters [fruit {:type str  :doc "Which fruit"}
               path  {:type path  :doc "Stock file"  :default "monday.txt"}]
  :effects    [:reads]
  :guard      (if (= fruit "durian") (deny "durians are not sold here") (inside-workspace path))
  :examples   [(count-fruit :fruit "apples")]
  :body       (do
                (with [file (.open-read ctx.workspace path)]
                  (setv lines (.splitlines (.decode (.read file)))))
                (sum (gfor  line lines
                            :if (.startswith line (+ fruit " "))
                            (int (get (.split line) 1))))))
