"cognitive-loop: perceive a stimulus, think, act through the door, and recurse on the results until no call is left.
Knows a Run (agent/run.py) and asks the door for everything; it must not run a tool or read a file by itself.

The recursion is a trampoline: a turn returns the Reply, or a Bounce that holds the next stimulus, so that ten
thousand turns use no more stack than ten."

(import
  asyncio
  dataclasses [dataclass]
  agent.run [CallRecord result-text]
  neuro.backends.base [ModelError]
  neuro.think [AFTER-RESULT think]
  tools.door [new-call])

;; * The trampoline

(defclass [(dataclass :frozen True)] Bounce []
  "The recursive call of cognitive-loop that is still to be made."
  #^ str role
  #^ str stimulus)

(defn :async run-loop [run]
  "Drive cognitive-loop from the task to its Reply. Never raises for what a model or a tool does."
  (setv turn (Bounce "user" run.task))
  (while (isinstance turn Bounce)
    (setv turn (await (cognitive-loop turn run))))
  turn)

;; * The loop

(defn :async cognitive-loop [stimulus run]
  "One turn: the stimulus is perceived, the model thinks, its calls are done, their results are the next stimulus."
  (cond
    run.interrupted
      (.end run "interrupted" "The run was interrupted.")
    (>= run.step run.limits.steps)
      (.end run "failed" f"The run was stopped after {run.step} steps without an answer.")
    True
      (do
        (perceive stimulus run)
        (setv thought (await (one-thought run)))
        (if (isinstance thought Ending)
            (.end run thought.status thought.reason)
            (await (act thought run))))))

(defn perceive [stimulus run]
  "Append the stimulus to the conversation; nothing said before is ever changed."
  (+= run.step 1)
  (.append run.messages stimulus.role stimulus.stimulus))

(defclass [(dataclass :frozen True)] Ending []
  "Why a run ends without an answer."
  #^ str status
  #^ str reason)

(defn :async one-thought [run]
  "The model's thought, or the Ending when it cannot think or is interrupted."
  (setv last-turn (= run.step run.limits.steps)
        run.thinking (asyncio.ensure-future
                       (think run.messages run.backend run.door.table
                              :must-act (and run.must-act (not run.calls) (not last-turn))
                              :must-answer last-turn
                              :max-tokens run.limits.tokens
                              :on-text (when run.listener (fn [piece] (.tell run "text" piece))))))
  (try
    (setv thought (await run.thinking))
    (+= run.usage thought.usage)
    (.tell run "thought" thought)
    thought
    (except [error ModelError]
      (Ending "failed" (str error)))
    (except [asyncio.CancelledError]
      (when (not run.interrupted)
        (raise))
      (Ending "interrupted" "The run was interrupted."))
    (finally
      (setv run.thinking None))))

(defn :async act [thought run]
  "Do the calls of a thought in order. The results, or what was unreadable, bounce; an answer ends the run."
  (setv reading thought.reading  heard []  records [])
  (for [[place found] (enumerate reading.calls)]
    (setv record (await (one-call found.form place run)))
    (.append records record)
    (.append heard (heard-of record run)))
  (setv waiting (lfor  record records  :if (= record.result.status "pending")  record.result.message)
        stuck (lfor  record records  :if (too-often? record run)  record.form))
  (for [fault reading.errors]
    (.append heard f"A form of your reply could not be read. {fault}"))
  (cond
    run.interrupted  (.end run "interrupted" "The run was interrupted.")
    waiting  (.end run "pending" (.join "\n" waiting))
    stuck  (.end run "failed" f"The run was stopped: the model made the call {(get stuck 0)} again and again.")
    reading.calls  (do (setv run.faults 0) (results heard run))
    heard  (complaint (.join "\n" heard) run)
    (= thought.finish "length")  (complaint "Your reply was cut off because it was too long. Be brief." run)
    reading.text  (.end run "done" reading.text)
    True  (complaint "Your reply was empty. Make a call, or answer in plain words." run)))

;; * What the model hears

(defn results [heard run]
  "The results of a turn as the next stimulus, with the task in view."
  (setv next-turn (+ run.step 1)
        cue (if (>= next-turn run.limits.steps)
                "This was the last call. Answer in plain words now."
                AFTER-RESULT))
  (Bounce "tool" (+ (.join "\n\n" heard) f"\n\nThe task: {run.task}\n{cue}")))

(defn complaint [text run]
  "Tell the model what was wrong with its reply; the run ends when that does not help."
  (+= run.faults 1)
  (.tell run "fault" text)
  (if (>= run.faults run.limits.faults)
      (.end run "failed" f"The run was stopped: {run.faults} replies in a row could not be used. The last fault: {text}")
      (Bounce "user" f"{text}\n\nThe task: {run.task}")))

;; * One call

(defn :async one-call [form place run]
  "Take one call through the door; the same call again gets its earlier result while nothing has changed."
  (setv digest (call-digest form run)
        earlier (.get run.seen digest))
  (.tell run "call" form)
  (when earlier
    (setv (get run.repeated digest) (+ 1 (.get run.repeated digest 0)))
    (.tell run "result" earlier)
    (return earlier))
  (setv call (marked-call form place run)
        record (CallRecord form
          (cond
            run.interrupted
              (.refuse run.door call run.context "cancelled" "The run was interrupted before this call.")
            (>= (len run.calls) run.limits.calls)
              (.refuse run.door call run.context "limited"
                       f"This run has made its {run.limits.calls} calls; answer in plain words.")
            True
              (await (.dispatch run.door call run.context)))))
  (.append run.calls record)
  (remember digest record run)
  (.tell run "result" record)
  record)

(defn marked-call [form place run]
  "The call with the marks only the host can set."
  (new-call form :route run.route :user run.user :session run.session
                 :depth run.depth :round run.step :order place))

(defn call-digest [form run]
  "Which call this is, however it is spelt; a tool that may be repeated is a new one each time."
  (setv tool (when (in form.tool run.door.table) (.get run.door.table form.tool)))
  (if (and tool tool.allow-repeat)
      f"{form.digest}-{(len run.calls)}"
      form.digest))

(defn remember [digest record run]
  "What changed the world makes every earlier result old."
  (when record.result.side-effects
    (.clear run.seen)
    (.clear run.repeated))
  (setv (get run.seen digest) record))

(defn too-often? [record run]
  (>= (.get run.repeated (call-digest record.form run) 0) run.limits.repeats))

(defn heard-of [record run]
  "What the model is told of a call."
  (setv told (result-text record run.limits.result-chars))
  (if (.get run.repeated (call-digest record.form run))
      (+ told "\nYou have made this very call before and its result is the same. Do not make it again.")
      told))
