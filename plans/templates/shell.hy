;; Rules that let programs run without a question: git, tests and linters. Copy the rules you want into policy.hy in
;; your settings folder (quoth doctor prints its path). To see how the rules judge a call:
;;   quoth policy explain '(shell :argv ["git" "status"])'
;; Each program runs inside a boundary: it may change this workspace, but it has no network, because no rule here
;; names :network. Inside, it can run any code of the project: a test, a hook or a Makefile can contain any command.

;; Reading the history. The word after git must be its command, so that -c and --exec-path cannot come before it;
;; --output is excluded because it writes a file.
(allow (shell :argv (and ["git" (one-of "status" "diff" "log" "show" "blame" "ls-files") ...]
                         (not (any (matches "^--ou"))))))
(allow (shell :argv ["git" "branch" (one-of "--list" "--show-current" "-a" "-v")]))

;; Committing. These rules do not allow a push, which needs the network.
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

;; This rule asks about a shell even if another rule allows it. To forbid shells, write deny for ask.
(ask (shell :argv [(matches "(^|/)(ba|da|z|k|fi)?sh$") ...]) :why "a shell runs what its text says")

;; Allow programs with the network one by one. Such a program can send everything it reads to any server, and it runs
;; the commands in its files: a call that may write requirements.txt, even in another folder, thereby gets the network.
;; (allow (shell :argv ["pip" "install" "-r" "requirements.txt"] :network True))
