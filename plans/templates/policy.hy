;; Rules for calls. To check them: quoth policy check my-name.hy. For one run: quoth run TASK --policy my-name.hy.
;; For all your runs: move this file to policy.hy in your settings folder (quoth doctor prints its path).
;; For all users of this workspace: move it to .quoth/policy.hy; it applies after: quoth trust
;; A deny beats an ask, an ask beats an allow; the order of the rules does not matter. To see which rule decides a call:
;;   quoth policy explain '(write-file :path "notes.txt" :content "")' --policy my-name.hy

;; No call may read or write files in this folder. :path means each path in a call.
(deny (any-tool :path (under "private")) :why "private/ is private")

;; Writing below drafts/ needs no question; quoth asks about other writes.
(allow (write-file :path (under "drafts")))

;; quoth asks about a text of more than 100,000 characters even there.
(ask (write-file :content (len > 100000)))

;; quoth asks about programs unless a rule allows them: quoth policy example prints rules for git, tests and linters.
;; This rule asks about a shell even if another rule allows it.
(ask (shell :argv [(matches "(^|/)(ba|da|z|k|fi)?sh$") ...]) :why "a shell runs what its text says")

;; Each user may run at most 200 searches a day.
(quota grep-search 200 :per :day :by :user)

;; Remove the semicolons of this line for fewer questions: quoth then asks about a call that changes something only if
;; it goes to a place that is neither in the task nor in a field of a result, or if it deletes, pays or runs a
;; program. See: quoth help policy
;; (careful)
