"The tools of a shop."

(require quoth [def-cognitive-tool def-shell-tool])
(import quoth [inside-workspace])

(def-cognitive-tool count-fruit
  "Say how many pieces of a fruit are in a stock file."
  :parameters [fruit {:type str  :doc "Which fruit"}
               path  {:type path  :doc "Stock file"  :default "stock.txt"}]
  :effects    [:reads]
  :guard      (if (= fruit "durian") (deny "durians are not sold here") (inside-workspace path))
  :examples   [(count-fruit :fruit "apples")]
  :body       (do
                (with [file (.open-read ctx.workspace path)]
                  (setv lines (.splitlines (.decode (.read file)))))
                (sum (gfor  line lines
                            :if (.startswith line (+ fruit " "))
                            (int (get (.split line) 1))))))

;; A macro of your own, built on def-cognitive-tool: a kind of tool that only says something fixed.
(defmacro def-answer-tool [name description answer]
  `(do
     (require quoth [def-cognitive-tool])
     (def-cognitive-tool ~name ~description :body ~answer)))

(def-answer-tool opening-hours
  "Say when the shop is open."
  "Monday to Friday, 9 to 17")

;; A program of your machine as a tool: an argument vector, never a shell. All processes that it starts end with the
;; call: on Linux even after setsid, elsewhere its process group. Processes of a service (cron, docker) do not end.
(def-shell-tool today
  "Say what day it is."
  :argv ["date" "+%A"])
