"Git tools for flight plans: changes and commits. Each tool runs one argument vector, never a shell.
They ask first, because git is a program, and a repository may contain settings that run other programs."

(eval-when-compile (require quoth [def-shell-tool]))
(import quoth [deny])

(defn revision [text]
  "Guard: a revision or range, not an option."
  (if (.startswith text "-")  (deny f"{text} is an option of git, not a revision")  True))

(def-shell-tool git-diff
  "Show the differences from a revision, by default the uncommitted changes."
  :parameters [of  {:type str  :doc "A revision or a range such as main..HEAD"  :default "HEAD"}
               but {:type str  :doc "A file or folder to leave out"  :default ""}]
  :guard      (revision of)
  :effects    [:reads :runs]
  :examples   [(git-diff :of "main..HEAD")  (git-diff :but "docs")]
  :argv       ["git" "--no-pager" "-c" "core.fsmonitor=false" "diff" "--no-color" "--no-ext-diff"
               "--no-textconv" "--end-of-options" of "--"
               (if but [":/" f":(exclude){but}"] None)])

(def-shell-tool git-log
  "List commits, one line each, the latest first."
  :parameters [of    {:type str  :doc "A revision or a range such as v1..HEAD"  :default "HEAD"}
               count {:type int  :doc "Maximum number of commits"  :default 50  :min 1  :max 500}]
  :guard      (revision of)
  :effects    [:reads :runs]
  :examples   [(git-log :count 5)]
  :argv       ["git" "--no-pager" "-c" "log.showSignature=false" "log" "--no-color" "--format=%h %s"
               "-n" count "--end-of-options" of "--"])
