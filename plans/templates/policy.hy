;; Rules for calls. To check them: quoth policy check my-name.hy. For one run: quoth run TASK --policy my-name.hy.
;; For all of yours: move this file to policy.hy in your folder of settings (quoth doctor says where that is).
;; For everybody in this folder: move it to .quoth/policy.hy; it counts after: quoth trust
;; A deny beats an ask, an ask beats an allow; their order never matters. To see which rule decides a call:
;;   quoth policy explain '(write-file :path "notes.txt" :content "")' --policy my-name.hy

;; Nobody reads or writes what is in this folder. :path is each path that a call names.
(deny (any-tool :path (under "private")) :why "private/ is nobody's business")

;; New texts below drafts/ need no question; all other writing is asked.
(allow (write-file :path (under "drafts")))

;; A text of more than 100,000 characters is asked even there.
(ask (write-file :content (len > 100000)))

;; Programs are asked about, unless a rule allows them: quoth policy example prints rules for git, tests and linters.
;; A shell is always asked about, whatever allows it.
(ask (shell :argv [(matches "(^|/)(ba|da|z|k|fi)?sh$") ...]) :why "a shell runs what its text says")

;; At most so many searches a day, for each user.
(quota grep-search 200 :per :day :by :user)

;; Without the semicolons, this line asks about what does more than read only where it goes to a place that stands
;; neither in the task nor in a field of a result, or deletes, pays or runs a program: quoth help policy
;; (careful)
