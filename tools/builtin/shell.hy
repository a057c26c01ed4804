"Runs programs inside a boundary of the kernel, to their end or in the background (tools/shell)."

(eval-when-compile (require quoth.tools.macros [def-cognitive-tool]))
(import quoth.tools.errors [ToolError])

(setv LONGEST 3600)
  ; Seconds that a call may wait for its program.

(defn may-run [argv cwd ctx]
  (import quoth.tools.shell.program)  ; here: most sessions run no program
  (quoth.tools.shell.program.may-run argv cwd ctx))

(defn run [argv cwd stdin timeout background network ctx]
  (import quoth.tools.shell.program :as program)
  (if background
      (program.begin argv :cwd cwd :stdin stdin :network network :ctx ctx)
      (program.run argv :cwd cwd :stdin stdin :timeout timeout :network network :ctx ctx)))

(defn :async operate [id operation timeout ctx]
  (when (is ctx.programs None)
    (raise (ToolError "This agent has no background programs.")))
  (when (and ctx.dry (= operation "kill"))
    (raise (ToolError "This is a dry run, and kill does more than read.")))
  (setv programs (ctx.programs))
  (cond
    (= operation "wait")  (await (.wait programs id timeout))
    (= operation "kill")  (await (.kill programs id))
    True                  (.look programs id)))

(def-cognitive-tool shell
  "Run a program in the workspace."
  :parameters [argv       {:type (get list str)  :doc "Program and arguments"}
               cwd        {:type path  :doc "Folder"  :default "."}
               stdin      {:type (| str None)  :doc "Its input"  :default None}
               timeout    {:type float  :doc "Seconds"  :default 120  :min 1  :max 3600}
               background {:type bool  :doc "Do not wait"  :default False}
               network    {:type bool  :doc "It needs the network"  :default False  :named True}]
  :effects    [:runs]
  :timeout    (+ LONGEST 60)
  :allow-repeat True
  :free-text  True
  :guard      (may-run argv cwd ctx)
  :examples   [(shell :argv ["git" "status"])]
  :body       (await (run argv cwd stdin timeout background network ctx)))

(def-cognitive-tool process
  "See, await or end a program in the background."
  :parameters [id        {:type str  :doc "The id that shell returned"}
               operation {:type str  :doc "What to do"  :default "output"  :choices ["output" "wait" "kill"]}
               timeout   {:type float  :doc "Seconds to wait"  :default 60  :min 0  :max 3600}]
  :effects    []
  :timeout    (+ LONGEST 60)
  :allow-repeat True
  :free-text  True
  :body       (await (operate id operation timeout ctx)))
