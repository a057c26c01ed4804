"cognitive-loop: perceive a stimulus, think, act through the door, and recurse on the results until no call is
left. Knows a Run (agent/run.py) and asks the door for everything; it must not run a tool or read a file by
itself.

The recursion is a trampoline: a turn returns the Reply, or a Bounce that holds the next stimulus, so that ten
thousand turns use no more stack than ten."

(import
  asyncio
  dataclasses [dataclass]
  agent.run [CallRecord result-text]
  neuro.backends.base [ModelError]
  neuro.think [AFTER-RESULT NOW-ANSWER think]
  tools.door [new-call]
  tools.redact [Redactor])

(setv TRANSIENT #("error" "timeout" "limited"))
  ; What may go better when it is tried again.
(setv MUST-LOOK-TURNS 3)
  ; After so many turns without any success the model may answer anyway.

;; * The trampoline

(defclass [(dataclass :frozen True)] Bounce []
  "The recursive call of cognitive-loop still to be made; its stimulus is messages, #(role text) each."
  #^ tuple messages)

(defn :async run-loop [run]
  "Drive cognitive-loop from the task to its Reply. Never raises for what a model or a tool does."
  (setv turn (Bounce #(#("user" run.task))))
  (while (isinstance turn Bounce)
    (setv turn (await (cognitive-loop turn run))))
  turn)

;; * The loop

(defn :async cognitive-loop [stimulus run]
  "One turn: the stimulus is perceived, the model thinks, its calls are done; their results are the next one."
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
  (for [[role text] stimulus.messages]
    (.append run.messages role text)))

(defclass [(dataclass :frozen True)] Ending []
  "Why a run ends without an answer."
  #^ str status
  #^ str reason)

(defn :async one-thought [run]
  "The model's thought, or the Ending when it cannot think or is interrupted."
  (.tell run "turn" run.step)
  (setv must-answer (or run.must-answer (>= run.step run.limits.steps))
        run.thinking (asyncio.ensure-future
                       (think run.messages run.backend run.door.table
                              :must-act (and (not must-answer) (must-look? run))
                              :must-answer must-answer
                              :without run.avoided
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

(defn must-look? [run]
  "Whether the model may not answer yet: nothing it tried has told it anything, and it has tries left."
  (and run.must-act
       (<= run.step MUST-LOOK-TURNS)
       (not (any (gfor record run.calls (telling? record))))))

(defn telling? [record]
  "Whether a result says anything: it went well and is not empty."
  (and record.result.ok (not-in record.result.value [None "" [] {}])))

(defn :async act [thought run]
  "Do the calls of a thought in order. The results, or what was unreadable, bounce; an answer ends the run."
  (setv reading thought.reading  records []  old (sfor digest run.seen digest))
  (for [[place found] (enumerate reading.calls)]
    (.append records (await (one-call found.form place run))))
  (setv repeats (lfor  record (unique records run)  :if (in (call-digest record.form run) old)  record)
        stuck (note-repeats repeats run)
        waiting (lfor  record records  :if (= record.result.status "pending")  record.result.message)
        heard (+ (lfor record records (heard-of record run))
                 (lfor fault reading.errors f"A form of your reply could not be read. {fault}")))
  (when (and heard (or run.interrupted waiting stuck))
    ; The conversation may go on another time: no call in it is left without its result.
    (.append run.messages "tool" (.join "\n\n" heard)))
  (cond
    run.interrupted  (.end run "interrupted" "The run was interrupted.")
    waiting  (.end run "pending" (.join "\n" waiting))
    stuck  (.end run "failed" f"The run was stopped: the model made the call {stuck} again and again.")
    reading.calls  (do (setv run.faults 0) (results heard run))
    heard  (complaint (.join "\n" heard) run)
    (= thought.finish "length")  (complaint "Your reply was cut off because it was too long. Be brief." run)
    reading.text  (.end run "done" reading.text)
    True  (complaint "Your reply was empty. Make a call, or answer in plain words." run)))

(defn unique [records run]
  "One record for each different call of a turn: saying a thing twice in one breath is no repeat."
  (list (.values (dfor record records (call-digest record.form run) record))))

(defn note-repeats [repeats run]
  "Remember which calls came back. A model that repeats what told it something has what it needs and is to
  answer; one that repeats what did not is to leave that tool. Returns the form that came back too often, or
  None."
  (setv run.must-answer (any (gfor record repeats (telling? record)))
        run.avoided (sfor  record repeats  :if (not (telling? record))  record.form.tool)
        stuck None)
  (for [record repeats]
    (setv digest (call-digest record.form run)
          (get run.repeated digest) (+ 1 (.get run.repeated digest 0)))
    (when (>= (get run.repeated digest) run.limits.repeats)
      (setv stuck record.shown)))
  stuck)

;; * What the model hears

(defn results [heard run]
  "The results of a turn as the next stimulus, and the task again, so that it is always in view."
  (setv cue (if (or run.must-answer (>= (+ run.step 1) run.limits.steps))  NOW-ANSWER  AFTER-RESULT))
  (Bounce #(#("tool" (.join "\n\n" heard))
            #("user" f"{run.task}\n{cue}"))))

(defn complaint [text run]
  "Tell the model what was wrong with its reply; the run ends when that does not help."
  (+= run.faults 1)
  (.tell run "fault" text)
  (if (>= run.faults run.limits.faults)
      (.end run "failed" (+ f"The run was stopped: {run.faults} replies in a row could not be used. "
                            f"The last fault: {text}"))
      (Bounce #(#("user" f"{text}\n\nThe task: {run.task}")))))

;; * One call

(defn :async one-call [form place run]
  "Take one call through the door; the same call again gets its earlier result while nothing has changed."
  (setv digest (call-digest form run)
        earlier (.get run.seen digest)
        shown (shown-form form run))
  (.tell run "call" shown)
  (when (and earlier (not-in earlier.result.status TRANSIENT))
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
              (await (.dispatch run.door call run.context)))
          shown))
  (.append run.calls record)
  (remember digest record run)
  (.tell run "result" record)
  record)

(defn marked-call [form place run]
  "The call with the marks only the host can set."
  (new-call form :route run.route :user run.user :session run.session
                 :depth run.depth :round run.step :order place))

(defn shown-form [form run]
  "The form as a person may see it: what its tool has declared secret is hidden."
  (setv table run.door.table
        params (if (in form.tool table) (. table (get form.tool) params) #()))
  (. (Redactor form params table.secrets :by-looks False) form))

(defn call-digest [form run]
  "Which call this is; the order of its arguments makes no difference. A tool that may be repeated is another
  each time."
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

(defn heard-of [record run]
  "What the model is told of a call."
  (setv told (result-text record run.limits.result-chars))
  (if (and (not (telling? record)) (in (call-digest record.form run) run.repeated))
      (+ told "\nYou have made this very call before and its result was the same. Do something else.")
      told))
