"cognitive-loop: perceive a stimulus, think, act through the door, and recurse on the results until no call is
left. Knows a Run (agent/run/run.py) and asks the door for everything; it must not run a tool or read a file
by itself.

The recursion is a trampoline: a turn returns the Reply, or a Bounce that holds the next stimulus, so that ten
thousand turns use no more stack than ten."

(import
  asyncio [gather]
  dataclasses [dataclass replace]
  quoth.agent.reply [CallRecord]
  quoth.agent.run.compaction [ask-within-window reply-tokens]
  quoth.agent.run.observation [Advice Lesson call-observation coach-of complaint cut-off empty-reply
                               find-repeats known-calls last-words refused remember reminder
                               result-images unreadable]
  quoth.agent.run.own [NoMemoryError with-memory with-tools]
  quoth.agent.run.run [RunStoppedError Turn]
  quoth.agent.run.spec [NO-JSON]
  quoth.neuro.backends.base [ModelError]
  quoth.neuro.prompt.dialects [call-id result-messages]
  quoth.neuro.think [think]
  quoth.tools.call.call [new-call]
  quoth.tools.errors [StoreError]
  quoth.tools.history.receipts [key-in]
  quoth.tools.lisp.forms [CallForm])

;; * The trampoline

(defclass [(dataclass :frozen True)] Bounce []
  "A recursive call of cognitive-loop that is still to be made. Its stimulus is a list of messages
  #(role text), with the call id as third for the result of a native call, and images as fourth."
  #^ tuple messages)

(defn :async run-loop [run [stimulus #()] [checkpoint None]]
  "Drive cognitive-loop from the task, or from a later STIMULUS, to its Reply. CHECKPOINT is called with each
  next stimulus. Never raises for what a model or a tool does. When events cannot be recorded, the run ends."
  (setv turn (Bounce (or stimulus #(#("user" run.spec.shown "" run.images)))))
  (with [ended (.traced run)]
    (while (isinstance turn Bounce)
      (setv turn (try
                   (with [_ (.traced-turn run)]
                     (setv came (await (cognitive-loop turn run)))
                     (when (and checkpoint (isinstance came Bounce))
                       (checkpoint came.messages))
                     came)
                   (except [error [StoreError NoMemoryError]]
                     (.broken-off run error)))))
    (ended turn))
  turn)

;; * The loop

(defn :async cognitive-loop [stimulus run]
  "One turn: perceive the stimulus, let the model think, make its calls; their results are the next stimulus."
  (cond
    run.state.interrupted
      (.end run "interrupted" "The run was interrupted.")
    (<= run.budget.steps-left 0)
      (.end run "failed" f"The run was stopped after {run.budget.steps-taken} steps without an answer.")
    (isinstance (setx thought (await (one-thought stimulus run))) Ending)
      (.end run thought.status thought.reason)
    True
      (await (act thought run))))

(defn :async perceive [stimulus run]
  "Append the stimulus, with what is new in the tools and in the memory, to the conversation; nothing said
  before is ever changed."
  (+= run.state.step 1)
  (+= run.budget.steps-taken 1)
  (for [message (await (with-memory (await (with-tools stimulus.messages run)) run))]
    (.append run.messages #* message)))

(defclass [(dataclass :frozen True)] Ending []
  "Why a run ends without an answer."
  #^ str status
  #^ str reason)

(defn :async one-thought [stimulus run]
  "The model's thought upon the stimulus, or the Ending when it cannot think or is interrupted."
  (try
    (setv thought (await (.stoppably run (perceive-and-think stimulus run))))
    (.spend run thought.usage)
    (setv run.dialect thought.dialect)
    (when thought.note  (.tell run "note" thought.note))
    (.tell-words run thought)
    (.tell run "thought" thought)
    (if (= thought.finish "refused")
        (Ending "failed" (refused run.backend.name thought.text))
        thought)
    (except [error ModelError]
      (Ending "failed" (str error)))
    (except [RunStoppedError]
      (when (and run.words (setx tail (.tail run.words)))
        (.tell run "said" tail))
      (Ending "interrupted" "The run was interrupted."))))

(defn :async perceive-and-think [stimulus run]
  (await (perceive stimulus run))
  (.tell run "turn" run.state.step)
  (setv must-answer (or run.state.must-answer (<= run.budget.steps-left 0)))
  (await (ask-within-window run (fn []
    (setv coach (coach-of run)  ; a cascade's next model may need another
          advice (if coach  (.before-turn coach run)  (Advice)))
    (think run.messages run.backend run.door.table
           :dialect run.dialect
           :search run.spec.search
           :must-act (and (not must-answer) advice.must-act)
           :must-answer must-answer
           :without advice.without
           :lead advice.lead
           :max-tokens (reply-tokens run)
           :on-text (when run.listener (.hearing run))
           :options run.spec.request-options
           :schema (when run.output run.output.schema))))))

(defn :async act [thought run]
  "Make the calls of a thought, those that only read side by side, and conclude the turn."
  (setv reading thought.reading
        own (.sure run reading)
        sure (if (is own None)  run.context.confidence  own)
        cut (if (= thought.finish "length") (cut-off run.state.reply-tokens thought.usage.output-tokens) "")
        turn (Turn :old (known-calls reading.calls run) :text reading.text :cut cut
                   :display reading.display :reasoning reading.reasoning
                   :errors (lfor fault reading.errors #((call-id fault) (str fault)))))
  (for [[place [_ fault]] (enumerate turn.errors)]
    (setv call (new-call (CallForm "") #** (.marks run 0 f"f{place}")))
    (.unreadable run.door call run.context thought.text fault))
  (setv calls (lfor  [place found] (enumerate reading.calls)
                     (new-call found.form :repairs found.repairs :quoted (.quoted run found thought.text)
                               :confidence sure #** (.marks run place))))
  (for [group (side-by-side calls run)]
    (for [record (await (make-calls group run (.changed run.context :confidence sure)))]
      (.append turn.records
        (replace record :call-id (call-id (get reading.calls (len turn.records))))))
    (when run.log.broken  ; nothing more is done that cannot be recorded
      (raise (StoreError run.log.broken))))
  (conclude turn run))

(defn side-by-side [calls run]
  "The calls of a reply in groups: those of a group run at once. They are different calls that follow each
  other and only read; any other call is a group of its own."
  (setv groups []  digests #{})
  (for [call calls]
    (setv reads (.may-run-beside run.door call))
    (if (and digests reads (not-in call.form.digest digests) (< (len digests) run.limits.parallel))
        (.append (get groups -1) call)
        (do (.append groups [call])
            (setv digests #{})))
    (when reads
      (.add digests call.form.digest)))
  groups)

(defn conclude [turn run]
  "Conclude a turn: results or faults give a Bounce, an answer gives the Reply."
  (setv run.state.must-answer False
        records turn.records
        waiting (lfor  record records  :if (= record.result.status "pending")  record.result.message)
        repeats (find-repeats turn run)
        coach (coach-of run)
        lesson (if coach  (.after-turn coach turn repeats run)  (Lesson))
        again (| repeats.same lesson.again)
        faults (lfor [id fault] turn.errors #(id (unreadable fault turn.cut)))
        heard (lfor record records #(record.call-id (call-observation record run (in record.key again))))
        told (+ (result-messages (+ heard faults)) (result-images records run)))
  (setv last (when (not (or run.state.interrupted waiting repeats.stuck run.output)) (last-words turn run))
        stops (and run.stops (or records (and faults turn.display))))
  (when (or run.state.interrupted waiting repeats.stuck last stops)
    ; The conversation may go on another time: no call in it is left without its result.
    (for [message told]  (.append run.messages #* message)))
  (cond
    run.state.interrupted  (.end run "interrupted" "The run was interrupted.")
    waiting  (.end run "pending" (if run.chats  turn.display  (.join "\n" waiting)))
    repeats.stuck  (.end run "failed" (stopped repeats.stuck run))
    last  (.end run "done" #* last)
    stops  (.end run "done" turn.display)
    records  (do (setv run.state.faults 0) (results told run turn.cut))
    faults  (complain (.join "\n" (lfor [_ fault] faults fault)) run told)
    turn.cut  (complain f"Your reply was {turn.cut}. Be brief." run)
    lesson.complaint  (complain lesson.complaint run)
    (and turn.text run.output)  (with-output turn run)
    turn.text  (.end run "done" (if run.chats  turn.display  turn.text) :reasoning turn.reasoning)
    True  (complain (empty-reply run) run)))

(defn with-output [turn run]
  "The Reply with the output of a run, or the complaint about an answer that holds none. Who has answered may
  call no more: from then on its server sees to it that the answer follows the schema."
  (setv call (new-call (CallForm "") #** (.marks run 0 "output"))
        ; What was recorded counts: another process may not know all that the type checks.
        told (.get run.past.faults (key-in call))
        [value fault] (if told  #(None told)  (.read run.output turn.text)))
  (if fault
      (do
        (.unreadable run.door call run.context turn.text fault)
        (setv run.state.must-answer (or (!= fault NO-JSON) (> run.state.faults 0)))
        (complain f"{fault} {run.output.wish}" run))
      (.end run "done" turn.text None value :reasoning turn.reasoning)))

(defn stopped [record run]
  "The reason why a run ends at a call that was repeated too often; it is written to the audit too."
  (setv reason f"The run was stopped: the model made the call {record.shown} again and again.")
  (.refuse run.door (new-call record.form #** (.marks run 0 "stop")) run.context "limited" reason)
  reason)

;; * The next stimulus

(defn results [told run cut]
  "The results of a turn as the next stimulus. CUT says how the reply was cut off, if it was."
  (when cut
    (.tell run "note" f"The reply was {cut}. {LONGER}"))
  (setv more (reminder run cut))
  (Bounce #(#* told #* (if more  [#("user" more)]  []))))

(setv LONGER "--max-reply-tokens N allows longer ones.")

(defn complain [text run [told #()]]
  "Tell the model what was wrong with its reply; the run ends when that does not help. TOLD are the results
  of native calls, each of which needs its own message."
  (+= run.state.faults 1)
  (.tell run "fault" text)
  (if (>= run.state.faults run.limits.faults)
      (.end run "failed" (+ f"The run was stopped: {run.state.faults} replies in a row could not be used. "
                            f"The last fault: {text}" (if (in "by the limit of" text) f" {LONGER}" "")))
      (Bounce (if (any (gfor [_ _ id] told id))
                  (tuple told)
                  #(#("user" (complaint text run)))))))

;; * The calls

(defn :async make-calls [calls run context]
  "The records of calls, in their order, that go through the door at the same time. It answers a repeated call
  with its receipt. After an interrupt it refuses every call."
  (setv shown (lfor  call calls  (.shown-form run call.form))
        stopped run.state.interrupted
        most (if stopped  (len calls)  (min (len calls) (max run.budget.calls-left 0))))
  (+= run.budget.calls-taken (if stopped 0 most))
  (for [form shown]
    (.tell run "call" form))
  (setv results (await (gather #* (lfor  [place call] (enumerate calls)
                                         (if (< place most)
                                             (.dispatch run.door call context)
                                             (over-limit call run))))))
  (lfor  [call form result] (zip calls shown results)
         (remember (CallRecord call.form result form :key (key-in call)) run)))

(defn :async over-limit [call run]
  (.refuse run.door call run.context "limited"
           f"This run has made its {run.budget.calls-taken} calls; answer in plain words."))
