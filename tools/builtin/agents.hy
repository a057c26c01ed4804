"A team for programs: think asks a model, cognitive-loop lets a sub-agent do a part of the work.
Only models that write programs are shown these tools. Models and loops are behind ctx.team and ctx.model."

(eval-when-compile (require quoth.tools.macros [def-cognitive-tool]))
(import
  typing [Any]
  quoth.tools.errors [ToolError ToolFailure]
  quoth.tools.lisp.printer [print-value])

(setv VALUE-CHARS 20_000)
  ; Characters of a value that are shown; a program asks about a longer value in slices.

(defn data-of [value ctx]
  "VALUE as a model is shown it, \"\" for none; the caller receives a message if it was cut."
  (when (is value None)
    (return ""))
  (setv text (if (isinstance value str) value (print-value value))
        more (- (len text) VALUE-CHARS))
  (when (<= more 0)
    (return f"VALUE:\n{text}"))
  (.say ctx (+ f"Only the first {VALUE-CHARS} of the value's {(len text)} characters were shown; "
               "ask about slices of it."))
  f"VALUE:\n{(cut text VALUE-CHARS)}\n[… {more} characters left out …]")

(defn :async may-use [model ctx]
  "Guard: whether the call may choose this model without approval."
  (if (is model None)  True  (await (.may-use ctx.team model))))

(defn must-say [text what]
  (when (not (.strip text))
    (raise (ToolFailure "invalid" f"The {what} is empty."))))

(defn :async ask-model [prompt value model system ctx]
  (must-say prompt "prompt")
  (setv asked (if (is model None)  ctx.model  (await (.model ctx.team model)))
        data (data-of value ctx))
  (await (.complete asked (if data f"{prompt}\n\n{data}" prompt) :system system)))

(defn :async run-agent [task tools model value steps calls worktree call ctx]
  (must-say task "task")
  (setv beside (getattr ctx.team "beside" None))
  (when (and worktree (is beside None))
    (raise (ToolError "Sub-agents of this agent cannot have worktrees.")))
  (setv place (if worktree  (await (beside call ctx))  ctx))
  (await (.run ctx.team task :call call :context place :data (data-of value ctx)
                             :tools tools :model model :steps steps :calls calls)))

(def-cognitive-tool think
  "Ask a model a question and get its answer as text. It sees only the question and the value: it has no
  tools, and does not know this conversation."
  :parameters [prompt {:type str  :doc "The question"}
               value  {:type Any  :doc "Data the question is about"  :default None}
               model  {:type (| str None)  :doc "Another model than yours"  :default None}
               system {:type str  :doc "How it should answer"  :default ""}]
  :cost       :expensive
  :timeout    300
  :shown      False
  :free-text  True
  :guard      (await (may-use model ctx))
  :examples   [(think :prompt "Which of these are fruit?" :value ["apple" "chair" "plum"])]
  :body       (await (ask-model prompt value model system ctx)))

(def-cognitive-tool cognitive-loop
  "Let a sub-agent do a task and get its answer as text. It works in this workspace with the tools you give
  it, and uses up the steps and calls you have left."
  :parameters [task  {:type str  :doc "The task; it knows nothing else"}
               tools {:type (| (get list str) None)  :default None
                      :doc "Names of the tools it may use; all of yours if left out"}
               model {:type (| str None)  :doc "Another model than yours"  :default None}
               value {:type Any  :doc "Data to show it with the task"  :default None}
               steps {:type (| int None)  :doc "Maximum number of turns"  :default None  :min 1}
               calls {:type (| int None)  :doc "Maximum number of calls"  :default None  :min 0}
               worktree {:type bool  :default False
                         :doc "Work in a git worktree of its own; the answer says how to merge it"}]
  :cost       :expensive
  :timeout    1800
  :shown      False
  :free-text  True
  :guard      (await (may-use model ctx))
  :examples   [(cognitive-loop :task "Which file names a colour?" :tools ["grep-search" "read-file"])]
  :body       (await (run-agent task tools model value steps calls worktree call ctx)))
