"Merging the work of an agent that had a git worktree of its own. A person is always asked, and shown the
difference."

(eval-when-compile (require quoth.tools.macros [def-cognitive-tool]))
(import
  quoth.tools.call.call [ask]
  quoth.tools.errors [ToolError ToolFailure]
  quoth.tools.text [number-of])

(defn repository [ctx]
  (import quoth.tools.shell.worktrees [Worktrees])  ; here: most agents work alone
  (Worktrees ctx.workspace.home))

(defn mergeable [name commit ctx]
  "Guard: ask, if the merge is possible now."
  (when (!= ctx.workspace.root ctx.workspace.home)
    (raise (ToolFailure "error" "A worktree is merged in the project, not in another worktree.")))
  (try
    (.differences (repository ctx) name commit)
    (except [error ToolError]
      (raise (ToolFailure "error" (str error)))))
  (ask f"it merges quoth/{name} into the current branch"))

(defn merged [name commit ctx]
  (setv [new files] (.merge (repository ctx) name commit f"Merge quoth/{name}"))
  (.effect ctx f"merged:quoth/{name}")
  f"Merged quoth/{name} as {(cut new 12)}: {(number-of files "file")} changed.")

(def-cognitive-tool merge-worktree
  "Merge a commit of an agent's worktree into the current branch and the files of the project."
  :parameters [name   {:type str  :doc "The worktree, named after its session"}
               commit {:type str  :doc "The whole id of the last commit on its branch"}]
  :effects    [:writes]
  :timeout    600
  :shown      False
  :guard      (mergeable name commit ctx)
  :changes    (.shown (repository ctx) name commit)
  :examples   [(merge-worktree :name "s1a2b3c4" :commit "5089f15f0c3a7a5d4c1e0b9a8d7c6b5a49382716")]
  :body       (merged name commit ctx))
