"cognitive-loop: perceive a stimulus, think, act through the door, and recurse on the results until no call is
left. Knows a Run (agent/run/run.py) and asks the door for everything; it must not run a tool or read a file
by itself.

The recursion is a trampoline: a turn returns the Reply, or a Bounce that holds the next stimulus, so that ten
thousand turns use no more stack than ten."

(import
  asyncio [gather]
  dataclasses [dataclass replace]
  quoth.agent.run.compaction [ask-within-window reply-tokens]
  quoth.agent.run.core-memory [NoMemoryError with-memory]
  quoth.agent.run.remote-tools [with-tools]
  quoth.agent.reply [CallRecord]
  quoth.agent.run.observation [call-observation complaint cut-off empty-reply refused reminder
                               result-images unreadable]
  quoth.agent.run.output [NO-JSON]
  quoth.agent.run.repeats [repeats-of]
  quoth.agent.run.run [RunStoppedError Turn]
  quoth.agent.terminal.forms [show-value]
  quoth.neuro.backends.base [ModelError]
  quoth.neuro.prompt.dialects [call-id result-messages]
  quoth.neuro.prompt.memory [FROM-MEMORY is-from-memory may-tell]
  quoth.neuro.prompt.surroundings [may-compute]
  quoth.neuro.reading.words [Words]
  quoth.neuro.think [think]
  quoth.tools.call.call [PROGRAMS new-call]
  quoth.tools.errors [StoreError]
  quoth.tools.history.call-log [key-in]
  quoth.tools.lisp.forms [CallForm]
  quoth.tools.call.redaction [Redactor]
  quoth.tools.call.services [USER])

(setv MUST-LOOK-TURNS 3)
  ; After so many turns without any success the model may answer anyway.

;; * The trampoline

(defclass [(dataclass :frozen True)] Bounce []
  "A recursive call of cognitive-loop that is still to be made. Its stimulus is a list of messages
  #(role text), with the call id as third for the result of a native call, and images as fourth."
  #^ tuple messages)

(defn :async run-loop [run [stimulus #()] [checkpoint None]]
  "Drive cognitive-loop from the task, or from a later STIMULUS, to its Reply. CHECKPOINT is called with
  each next stimulus. Never raises for what a model
  or a tool does. When events cannot be recorded, the run ends."
  (setv turn (Bounce (or stimulus
                         #(#("user" run.spec.shown "" run.images)))))
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
    True
      (do
        (setv thought (await (one-thought stimulus run)))
        (if (isinstance thought Ending)
            (.end run thought.status thought.reason)
            (await (act thought run))))))

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
    (when thought.note
      (.tell run "note" thought.note))
    (tell-words thought run)
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
    (think run.messages run.backend run.door.table
           :dialect run.dialect
           :search run.spec.search
           :must-act (and (not must-answer) (must-look? run))
           :must-answer must-answer
           :without (| run.state.avoided (unlooked run))
           :lead (if (may-remember? run) FROM-MEMORY "")
           :max-tokens (reply-tokens run)
           :on-text (when run.listener (hearing run))
           :options run.spec.request-options
           :schema (when run.output run.output.schema))))))

(defn hearing [run]
  "A function for the pieces of a streamed reply: it tells the listener of each piece, of each block of words
  that is complete, and of each call as soon as it is."
  (setv run.words (Words (fn [text] (.read-text run.dialect text run.door.table)))
        calls (.stream run.dialect run.door.table))
  (fn [piece]
    (.tell run "text" piece)
    (for [block (.feed run.words piece)]
      (.tell run "said" block))
    (for [form (calls piece)]
      (.tell run "written" (str (shown-form form run))))))

(defn tell-words [thought run]
  "Tell the listener the words of a reply that it has not been told; those that the transcript has answered
  were told when they came."
  (setv recalled (and run.log.live run.log.recalled)
        words (when (not recalled) run.words)
        run.words None)
  (when (and words (!= thought.finish "refused"))
    (setv rest (.rest words (if run.chats  thought.reading.display  thought.reading.text)))
    (when rest
      (.tell run "said" rest))))

(defn must-look? [run]
  "Whether the model may not answer yet: no result has told it anything, and it has tries left."
  (and run.must-act
       (<= run.state.step MUST-LOOK-TURNS)
       (not (any (gfor record run.state.calls (news? record run))))))

(defn news? [record run]
  "Whether a result tells more than the model was told of its place: a list of the same files does not, and
  small models made up what is in them."
  (setv value record.result.value)
  (and (telling? record)
       (not (and (isinstance value list)
                 (all (gfor  item value
                             (and (isinstance item str) (in f"| {item}\n" f"{run.spec.surroundings}\n"))))))))

(defn may-remember? [run]
  "Whether a model that must look first may instead answer from its memory. It gets one try."
  (and (= run.state.faults 0) (not run.output) (may-tell run.state.known run.spec.task)))

(defn made-up? [text run]
  "Whether a model that must look first says that it remembers what its memory does not hold."
  (and (must-look? run)
       (.startswith text (.strip FROM-MEMORY))
       (not (is-from-memory (.removeprefix text (.strip FROM-MEMORY)) run.state.known run.spec.task))))

(defn unlooked [run]
  "The tools that show nothing new, while the model has to look at something first and has others for that:
  those that end a run, or touch nothing but the memory and messages. Small models put a guess into a note
  and answered from it. A program computes with what was seen, so where nothing was and the task has no
  numbers of its own, it waits too: they called functions that they wished there were."
  (setv blind (if (must-look? run)
                  (sfor  tool run.door.table.shown
                         :if (or (blind? tool)
                                 (searched-in-vain? tool run)
                                 (and (= tool.name PROGRAMS) (not (may-compute run.spec.task))))
                         tool.name)
                  (set)))
  (if (< (len blind) (len run.door.table.shown))  blind  (set)))

(defn blind? [tool]
  (or tool.ends-turn
      (and tool.effects (<= (set tool.effects) #{"memory" "messages" "asks"}))))

(defn searched-in-vain? [tool run]
  "Whether the memory was searched and nothing is there."
  (any (gfor record run.state.calls (and (= record.form.tool tool.name) (hitless? record.result.value)))))

(defn hitless? [value]
  (and (isinstance value dict) (= (.get value "hits") [])))

(defn telling? [record]
  "Whether a result is informative: it is ok and not empty, nor a search without hits; or its call has become
  a step of a plan."
  (or (= (.get record.result.audit "stage") "plan")
      (and record.result.ok
           (not-in record.result.value [None "" [] {}])
           (not (hitless? record.result.value)))))

(defn :async act [thought run]
  "Make the calls of a thought, those that only read side by side, and conclude the turn."
  (setv reading thought.reading
        own (.sure run reading)
        sure (if (is own None)  run.context.confidence  own)
        cut (if (= thought.finish "length") (cut-off run.state.reply-tokens thought.usage.output-tokens) "")
        turn (Turn :old (known reading.calls run) :text reading.text :cut cut
                   :display reading.display :reasoning reading.reasoning
                   :errors (lfor fault reading.errors #((call-id fault) (str fault)))))
  (for [[place [_ fault]] (enumerate turn.errors)]
    (setv call (new-call (CallForm "") #** (marks 0 run f"f{place}")))
    (.unreadable run.door call run.context thought.text fault))
  (setv calls (lfor  [place found] (enumerate reading.calls)
                     (new-call found.form :repairs found.repairs :quoted (.quoted run found thought.text)
                               :confidence sure #** (marks place run))))
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

(defn known [calls run]
  "The digests of a reply's calls that the run has made before."
  (sfor  found calls  :setv digest (call-digest found.form run)  :if (in digest run.state.seen)  digest))

(defn conclude [turn run]
  "Conclude a turn: results or faults give a Bounce, an answer gives the Reply."
  (setv records turn.records
        ; One that has changed something now was no repetition: it had failed before.
        repeats (lfor  record (unique records run)
                       :if (and (in (call-digest record.form run) turn.old)
                                (not record.result.side-effects))
                       record)
        waiting (lfor  record records  :if (= record.result.status "pending")  record.result.message))
  (setv same (repeats-of records run.state.calls run.door.table)
        stuck (or (note-repeats repeats run) (one-too-often same records run))
        faults (lfor [id fault] turn.errors #(id (unreadable fault turn.cut)))
        heard (lfor record records
                    #(record.call-id
                      (call-observation record run (or (in-vain? record run) (in record.key same)))))
        told (+ (result-messages (+ heard faults)) (result-images records run)))
  (setv last (when (not (or run.state.interrupted waiting stuck run.output)) (last-words turn run))
        stops (and run.stops (or records (and faults turn.display))))
  (when (or run.state.interrupted waiting stuck last stops)
    ; The conversation may go on another time: no call in it is left without its result.
    (for [message told]
      (.append run.messages #* message)))
  (cond
    run.state.interrupted  (.end run "interrupted" "The run was interrupted.")
    waiting  (.end run "pending" (if run.chats  turn.display  (.join "\n" waiting)))
    stuck  (.end run "failed" (stopped stuck run))
    last  (.end run "done" #* last)
    stops  (.end run "done" turn.display)
    records  (do (setv run.state.faults 0) (results told run turn.cut))
    faults  (complain (.join "\n" (lfor [_ fault] faults fault)) run told)
    turn.cut  (complain f"Your reply was {turn.cut}. Be brief." run)
    (made-up? turn.text run)  (complain "That is not in your memory. Look first, with a call." run)
    (and turn.text run.output)  (with-output turn run)
    turn.text  (.end run "done" (if run.chats  turn.display  turn.text) :reasoning turn.reasoning)
    True  (complain (empty-reply run) run)))

(defn with-output [turn run]
  "The Reply with the output of a run, or the complaint about an answer that holds none. Who has answered may
  call no more: from then on its server sees to it that the answer follows the schema."
  (setv call (new-call (CallForm "") #** (marks 0 run "output"))
        ; What was recorded counts: another process may not know all that the type checks.
        told (.get run.past.faults (key-in call))
        [value fault] (if told  #(None told)  (.read run.output turn.text)))
  (if fault
      (do
        (.unreadable run.door call run.context turn.text fault)
        (setv run.state.must-answer (or (!= fault NO-JSON) (> run.state.faults 0)))
        (complain f"{fault} {run.output.wish}" run))
      (.end run "done" turn.text None value :reasoning turn.reasoning)))

(defn unique [records run]
  "One record for each different call of a turn: the same call twice in one reply is no repetition."
  (list (.values (dfor record records (call-digest record.form run) record))))

(defn note-repeats [repeats run]
  "Count repeated calls. A model that repeats an informative call has what it needs and must answer, unless a
  change of its is still to be made; one that repeats another must avoid that tool. Returns the record of the
  call that came back too often, or None."
  (setv open (unchanged? run)
        run.state.must-answer (and (not open) (any (gfor record repeats (news? record run))))
        run.state.avoided (sfor  record repeats  :if (or open (not (news? record run)))  record.form.tool)
        stuck None)
  (for [record repeats]
    (setv digest (call-digest record.form run)
          (get run.state.repeated digest) (+ 1 (.get run.state.repeated digest 0)))
    (when (>= (get run.state.repeated digest) run.limits.repeats)
      (setv stuck record)))
  stuck)

(defn one-too-often [same records run]
  "The record of a call that may be repeated and came back with the same result too often, or None. SAME
  counts the earlier ones by key. A recorded run that continued then continues now."
  (when (not run.past.answers)
    (next (gfor  record records  :if (>= (.get same record.key 0) run.limits.repeats)  record)
          None)))

(defn unchanged? [run]
  "Whether a change was tried, failed, and none was made since. A model that had to answer there said that it
  was made."
  (for [record (cut run.state.calls run.state.weighed None)]
    (cond
      record.result.side-effects  (setv run.state.tried False)
      (and (= record.result.status "error") (changes? record run))  (setv run.state.tried True)))
  (setv run.state.weighed (len run.state.calls))
  run.state.tried)

(defn changes? [record run]
  "Whether the tool of a call writes files."
  (setv table run.door.table)
  (and (in record.form.tool table) (in "writes" (. table (get record.form.tool) effects))))

(defn last-words [turn run]
  "How a turn ends the run, in which a call of a tool that ends it was ok: its reply, and the part of it that
  the user has not had as a message (None: all). None for any other turn."
  (setv said []  unsent []  told #{})
  (for [[place record] (enumerate turn.records)]
    (when (and (ends? record run) (not-in record.form.digest told))
      (.add told record.form.digest)
      (setv sent (lfor  one run.state.sent  :if (= one.key f"{run.name}/{run.state.step}.{place}")  one))
      (+= run.state.last-words sent)
      (for [one sent]
        (.append said one.text)
        (when (!= one.to USER)
          (.append unsent one.text)))
      (setv own (own-words record turn))
      (when (not (or sent (in own said)))
        (.append said own)
        (.append unsent own))))
  (when said
    #((.join "\n\n" said) (if (= said unsent)  None  (.join "\n\n" unsent)))))

(defn own-words [record turn]
  "What a call that ends the run and sends no message leaves to say: the words around it, or its value."
  (or turn.text
      (if (telling? record)  (show-value record.result.value)  record.result.message)
      "Done."))

(defn ends? [record run]
  "Whether a call ends the run."
  (setv table run.door.table)
  (and record.result.ok (in record.form.tool table) (. (.get table record.form.tool) ends-turn)))

(defn stopped [record run]
  "The reason why a run ends at a call that was repeated too often; it is written to the audit too."
  (setv reason f"The run was stopped: the model made the call {record.shown} again and again.")
  (.refuse run.door (new-call record.form #** (marks 0 run "stop")) run.context "limited" reason)
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
  with its receipt."
  (setv shown (lfor  call calls  (shown-form call.form run)))
  (for [form shown]
    (.tell run "call" form))
  (setv results (await (gather #* (lfor  call calls  (one-call call run context (counts? run))))))
  (lfor  [call form result] (zip calls shown results)
         (remember (CallRecord call.form result form :key (key-in call)) run)))

(defn counts? [run]
  "Count a call, unless none is left; whether it was counted. After an interrupt the door refuses every call."
  (setv counted (or run.state.interrupted (> run.budget.calls-left 0)))
  (+= run.budget.calls-taken (if (and counted (not run.state.interrupted)) 1 0))
  counted)

(defn :async one-call [call run context counted]
  "The result of a call: of the door, or that the run has no calls left."
  (if counted
      (await (.dispatch run.door call context))
      (.refuse run.door call run.context "limited"
               f"This run has made its {run.budget.calls-taken} calls; answer in plain words.")))

(defn marks [place run [name None]]
  "The fields of a call that only the host knows. Its key stays the same when the run is resumed."
  {"key" f"{run.session}/{run.name}/{run.state.step}.{(or name place)}"  "resumed" False
   "route" run.route  "user" run.user  "session" run.session  "depth" run.depth
   "parent" run.parent  "round" run.state.step  "order" place
   "message" run.context.user-message  "turn" run.turn})

(defn shown-form [form run]
  "The form as a person may see it, without the arguments that its tool declares secret."
  (setv table run.door.table
        params (if (in form.tool table) (. table (get form.tool) params) #()))
  (. (Redactor form params table.secrets :by-looks False) form))

(defn call-digest [form run]
  "The identity of a call, whatever the order of its arguments. Each call of a tool that may be repeated has
  its own."
  (setv tool (when (in form.tool run.door.table) (.get run.door.table form.tool)))
  (if (and tool tool.allow-repeat)
      f"{form.digest}-{(len run.state.calls)}"
      form.digest))

(defn remember [record run]
  "Keep a record, tell of it, and return it. A call with side effects makes earlier results out of date, so
  they are forgotten."
  (setv digest (call-digest record.form run))
  (.append run.state.calls record)
  (when record.result.side-effects
    (.clear run.state.seen)
    (.clear run.state.repeated)
    (setv run.state.forgotten (- (len run.state.calls) 1)))
  (setv (get run.state.seen digest) record)
  (.tell run "result" record)
  record)

(defn in-vain? [record run]
  "Whether a call without an informative result is a repetition."
  (and (not (telling? record)) (in (call-digest record.form run) run.state.repeated)))
