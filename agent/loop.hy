"cognitive-loop: perceive a stimulus, think, act through the door, and recurse on the results until no call is
left. Every call passes the door; the loop itself runs no tool and reads no file.

The recursion is a trampoline: a turn returns the Reply, or a Bounce with the next stimulus. Ten thousand
turns use no more stack than ten."

(import
  asyncio [gather]
  dataclasses [replace]
  quoth.agent.reply [CallRecord]
  quoth.agent.run.compaction [ask-within-window reply-tokens]
  quoth.agent.run.intent [ask-intent]
  quoth.agent.run.coach [Advice Lesson coach-of]
  quoth.agent.run.observation [call-observation complaint cut-off empty-reply
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
  quoth.tools.lazy-dataclass [dataclass]
  quoth.tools.lisp.forms [CallForm]
  quoth.tools.text [number-of])

;; * The trampoline

(defclass [(dataclass :frozen True)] Bounce []
  "A pending recursive call of cognitive-loop. Its stimulus is a tuple of messages
  #(role text call-id images); the id belongs to the result of a native call, and the last two may be
  missing."
  #^ tuple messages)

(defn :async run-loop [run [stimulus #()] [checkpoint None]]
  "Drive cognitive-loop from the task, or from a later STIMULUS, to its Reply. CHECKPOINT is called with each
  next stimulus. No error of a model or a tool is raised. The run ends when its events cannot be recorded."
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
  "One turn: perceive the stimulus, let the model think, run its calls; their results are the next stimulus."
  (cond
    run.state.interrupted
      (.end run "interrupted" "The run was interrupted.")
    (<= run.budget.steps-left 0)
      (.end run "failed"
            f"The run was stopped after {(number-of run.budget.steps-taken "step")} without an answer."
            :reason "max-steps")
    (isinstance (setx thought (await (one-thought stimulus run))) Ending)
      (.end run thought.status thought.text :reason thought.reason)
    True
      (await (act thought run))))

(defn :async perceive [stimulus run]
  "Append the stimulus to the conversation, with news of the tools and the memory. Earlier messages are never
  changed."
  (+= run.state.step 1)
  (+= run.budget.steps-taken 1)
  (for [message (await (with-memory (await (with-tools stimulus.messages run)) run))]
    (.append run.messages #* message)))

(defclass [(dataclass :frozen True)] Ending []
  "Why a run ends without an answer: the sentence, and the word of Reply.reason if the status does not say
  it."
  #^ str status
  #^ str text
  (setv #^ (| str None) reason None))

(defn :async one-thought [stimulus run]
  "The model's Thought about the stimulus, or the Ending if the model failed or the run was interrupted."
  (try
    (setv thought (await (.stoppably run (perceive-and-think stimulus run))))
    (.spend run thought.usage)
    (setv run.dialect thought.dialect)
    (when thought.note  (.tell run "note" thought.note))
    (.tell-words run thought)
    (when (not (and run.log.live run.log.recalled))
      ; Otherwise it was sent when it arrived.
      (.tell run "thought" thought))
    (if (= thought.finish "refused")
        (Ending "failed" (refused run.backend.name thought.text) "refused")
        thought)
    (except [error ModelError]
      (Ending "failed" (str error) error.ends-with))
    (except [RunStoppedError]
      (when (and run.words (setx tail (.tail run.words)))
        (.tell run "said" tail))
      (Ending "interrupted" "The run was interrupted."))))

(defn :async perceive-and-think [stimulus run]
  (await (perceive stimulus run))
  (.tell run "turn" run.state.step)
  (setv must-answer (or run.state.must-answer (<= run.budget.steps-left 0)))
  (await (ask-within-window run (fn []
    (setv coach (coach-of run)  ; the next model of a cascade may need another
          advice (if coach  (.before-turn coach run)  (Advice)))
    (think run.messages run.backend run.door.table
           :dialect run.dialect
           :search run.spec.search
           :must-act (and (not must-answer) advice.must-act)
           :must-answer must-answer
           :bounds advice.bounds
           :max-tokens (reply-tokens run)
           :on-text (when run.listener (.hearing run))
           :options run.spec.request-options
           :schema (when run.output run.output.schema))))))

(defn :async act [thought run]
  "Run the calls of a thought and conclude the turn. Calls that only read run at the same time."
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
    (when run.log.broken  ; without a record nothing more may run
      (raise (StoreError run.log.broken))))
  (conclude turn run))

(defn side-by-side [calls run]
  "The calls of a reply in groups; the calls of a group run at once. A group is a sequence of different calls
  that only read; any other call is a group of its own."
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
    ; The conversation may be resumed later: each call in it needs its result.
    (for [message told]  (.append run.messages #* message)))
  (cond
    run.state.interrupted  (.end run "interrupted" "The run was interrupted.")
    waiting  (.end run "pending" (if run.chats  turn.display  (.join "\n" waiting)))
    repeats.stuck  (.end run "failed" (stopped repeats.stuck run))
    last  (.end run "done" #* last)
    stops  (.end run "done" turn.display)
    records  (do (setv run.state.faults 0) (results told run turn.cut lesson.next))
    faults  (complain (.join "\n" (lfor [_ fault] faults fault)) run told turn.cut)
    turn.cut  (complain f"Your reply was {turn.cut}. Be brief." run :cut turn.cut)
    lesson.complaint  (complain lesson.complaint run)
    (and turn.text run.output)  (with-output turn run)
    turn.text  (.end run "done" (if run.chats  turn.display  turn.text) :reasoning turn.reasoning)
    True  (complain (empty-reply run) run)))

(defn with-output [turn run]
  "The Reply with the output of a run, or the complaint about an answer without one. After an answer the model
  may not call tools: its server then makes the answer follow the schema."
  (setv call (new-call (CallForm "") #** (.marks run 0 "output"))
        ; The recorded fault counts: the type may check less in another process.
        told (.get run.past.faults (key-in call))
        [value fault] (if told  #(None told)  (.read run.output turn.text)))
  (if fault
      (do
        (.unreadable run.door call run.context turn.text fault)
        (setv run.state.must-answer (or (!= fault NO-JSON) (> run.state.faults 0)))
        (complain f"{fault} {run.output.wish}" run))
      (.end run "done" turn.text None value :reasoning turn.reasoning)))

(defn stopped [record run]
  "The reason why a run ends after a call was repeated too often. It is written to the audit too."
  (setv reason f"The run was stopped: the model kept repeating the call {record.shown}.")
  (.refuse run.door (new-call record.form #** (.marks run 0 "stop")) run.context "limited" reason)
  reason)

;; * The next stimulus

(defn results [told run cut next]
  "The results of a turn as the next stimulus. CUT says how the reply was cut off, if it was; NEXT is the next
  step of the task."
  (when cut
    (.tell run "note" f"The reply was {cut}. {LONGER}"))
  (setv more (reminder run cut next))
  (Bounce #(#* told #* (if more  [#("user" more)]  []))))

(setv LONGER "--max-reply-tokens N allows longer ones.")

(defn complain [text run [told #()] [cut ""]]
  "Say to the model what was wrong with its reply; the run ends after too many faults in a row. `told` are the
  results of native calls: each needs its own message. `cut` says how the reply was cut off, if it was."
  (+= run.state.faults 1)
  (.tell run "fault" text)
  (if (>= run.state.faults run.limits.faults)
      (.end run "failed" (+ f"The run was stopped: {run.state.faults} replies in a row could not be used. "
                            f"The last fault: {text}" (if (in "by the limit of" cut) f" {LONGER}" ""))
            :reason (when cut "max-tokens"))
      (Bounce (if (any (gfor [_ _ id] told id))
                  (tuple told)
                  #(#("user" (complaint text run)))))))

;; * The calls

(defn :async make-calls [calls run context]
  "Run calls through the door at the same time. The result is their records, in order. The door answers a
  repeated call with its receipt, and refuses every call after an interrupt."
  (await (ask-intent run calls))
  (setv shown (lfor  call calls  (.shown-form run call.form))
        stopped run.state.interrupted
        most (if stopped  (len calls)  (min (len calls) (max run.budget.calls-left 0))))
  (+= run.budget.calls-taken (if stopped 0 most))
  (for [[call form] (zip calls shown)]
    (.tell run "call" form call.id))
  (setv results (await (gather #* (lfor  [place call] (enumerate calls)
                                         (if (< place most)
                                             (.dispatch run.door call context)
                                             (over-limit call run))))))
  (lfor  [call form result] (zip calls shown results)
         (remember (CallRecord call.form result form :key (key-in call)) run)))

(defn :async over-limit [call run]
  (.refuse run.door call run.context "limited"
           f"This run has used its {(number-of run.budget.calls-taken "call")}; answer in plain words."))
