;; Rules that let programs run without a question: git, tests and linters. Copy what you want into policy.hy in
;; your folder of settings (quoth doctor says where that is). To see what a call would meet:
;;   quoth policy explain '(shell :argv ["git" "status"])'
;; Each program runs inside a boundary: it may change this workspace, and it has no network, because no rule here
;; names :network. What it may run there is up to the project: a test, a hook or a Makefile can hold anything.

;; Looking at the history. The word after git is its command, so that no -c and no --exec-path comes before it;
;; --output would write a file.
(allow (shell :argv (and ["git" (one-of "status" "diff" "log" "show" "blame" "ls-files") ...]
                         (not (any (matches "^--ou"))))))
(allow (shell :argv ["git" "branch" (one-of "--list" "--show-current" "-a" "-v")]))

;; Keeping what was done. Nothing is pushed: that needs the network.
(allow (shell :argv ["git" "add" ...]))
(allow (shell :argv ["git" "commit" "-m" _]))

;; Tests.
(allow (shell :argv ["pytest" ...]))
(allow (shell :argv [(one-of "python" "python3") "-m" (one-of "pytest" "unittest") ...]))
(allow (shell :argv ["make" (one-of "test" "check" "lint")]))
(allow (shell :argv ["npm" (one-of "test" "t") ...]))
(allow (shell :argv [(one-of "cargo" "go") (one-of "test" "build" "vet" "check") ...]))

;; Linters and formatters.
(allow (shell :argv ["ruff" (one-of "check" "format") ...]))
(allow (shell :argv [(one-of "mypy" "eslint" "prettier" "black" "shellcheck") ...]))

;; A shell is asked about, whatever allows it; to forbid it, write deny for ask.
(ask (shell :argv [(matches "(^|/)(ba|da|z|k|fi)?sh$") ...]) :why "a shell runs what its text says")

;; What must have the network is named one by one. It can send what it reads to anybody, and runs what its files
;; say: here, whoever may write requirements.txt, also that of another folder, has the network, too.
;; (allow (shell :argv ["pip" "install" "-r" "requirements.txt"] :network True))
