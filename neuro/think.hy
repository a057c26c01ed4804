"think: show the model its tools and the conversation so far, and read the calls in its reply.
Must not know the door: it runs nothing. Belt first, then the task, then history, append-only."

(import
  dataclasses [dataclass replace]
  functools [partial]
  quoth.neuro.backends.messages [Messages]
  quoth.neuro.backends.base [NO-OPTIONS ToolsRefusedError Usage]
  quoth.neuro.prompt.dialects [CALL-FORM Dialect refusal-note sound-calls without-tools]
  quoth.neuro.reading.reply [Reading])

;; * What the model is told

(setv RULES CALL-FORM.rules)

(defclass [(dataclass :frozen True)] Thought []
  "A reply: its text, the calls, text and faults read from it, and the tokens it cost. `dialect` is the one of
  the request; when the server refused native tools it is a new one, and `note` tells the user so."
  #^ str text
  #^ Reading reading
  #^ Usage usage
  (setv #^ str finish "stop")
  (setv #^ Dialect dialect CALL-FORM)
  (setv #^ str note ""))

;; * Asking

(defn begin-conversation [table * [dialect CALL-FORM] [search False] [view None] [rules None]
                          [instructions ""] [surroundings ""]]
  "A conversation that opens with the belt, if there is one, the SURROUNDINGS as data, and INSTRUCTIONS, which
  have the last word; the task and all that follows is appended."
  (setv messages (Messages)
        belt (.opening dialect table :search search :view view :rules rules)
        opening (.join "\n\n" (filter None [belt surroundings instructions])))
  (when opening
    (.append messages "system" opening))
  messages)

(defn :async ask-neuro [messages backend * [grammar None] [max-tokens 1024] [on-text None]
                        [tools None] [tool-choice "auto"] [options None]]
  "The model's completion of MESSAGES; raises ModelError with a sentence."
  (setv native (if (is tools None)  {}  {"tools" tools  "tool_choice" tool-choice})
        native (if options  {#** native  "options" options}  native))
  (await (.complete backend messages
                    :grammar (when backend.takes-grammar grammar)
                    :max-tokens max-tokens
                    :on-text on-text
                    #** native)))

(defn json-rule [schema]
  "The rule of the grammar for JSON of the schema's type."
  (.get {"object" "jdict"  "array" "jlist"} (.get schema "type") "jvalue"))

(defn fall-back [messages dialect table search reason]
  "Go on in text: add a message that says how calls are written. The new dialect, and a note for the user."
  (setv note (refusal-note dialect reason)
        dialect (without-tools dialect))
  ; Joined to what the server has refused: the text is written anew anyway.
  (.add messages {"role" "user"  "content" (.opening dialect table :search search)})
  #(dialect note))

(defn :async ask-in [messages backend table dialect * must-act must-answer without lead max-tokens on-text
                     options schema]
  "The model's completion in a dialect, which the server sees to as far as it can."
  (setv tools (.tools dialect table backend.tool-view)
        calls-in-text (and table.shown (not must-answer) (is tools None))
        ; OpenAI takes no schema but that of an object.
        by-schema (and schema (not calls-in-text)
                       (or backend.takes-grammar (= (.get schema "type") "object"))))
  (await (ask-neuro messages backend
                    :grammar (when (and backend.takes-grammar (not by-schema))
                               (.grammar dialect table :may-answer (not must-act)
                                                       :may-call (not must-answer)
                                                       :without without
                                                       :lead lead
                                                       :answer (if schema (json-rule schema) "")))
                    :tools tools
                    :tool-choice (cond must-answer "none"  must-act "required"  True "auto")
                    :max-tokens max-tokens
                    :on-text on-text
                    :options (if by-schema
                               (replace (or options NO-OPTIONS) :schema schema)
                               options))))

(defn :async think [messages backend table * [dialect CALL-FORM] [search False] [must-act False]
                    [must-answer False] [without #()] [lead ""] [max-tokens 1024] [on-text None]
                    [options None] [schema None]]
  "One turn of the model over MESSAGES, which grow by its reply.

  MUST-ACT forbids an answer without a call, unless it begins with LEAD, if that is given; MUST-ANSWER forbids
  calls, and WITHOUT names tools it may not use now. A grammar enforces all of them, native tools the first
  and the third; any other backend has them only as words in the messages. A server that refuses native tools
  is asked again in text, after a message with the rules.

  SCHEMA is the JSON Schema of an answer. The server sees to it where no call can stand in the same text; a
  grammar for both only sees to it that an answer is JSON."
  (setv note ""
        ask (partial ask-in messages backend table :must-act must-act :must-answer must-answer
                     :without without :lead lead :max-tokens max-tokens :on-text on-text
                     :options options :schema schema))
  (when (and dialect.native (not backend.tool-view))
    (setv #(dialect note)
          (fall-back messages dialect table search f"{backend.name} takes no native tools.")))
  (try
    (setv completion (await (ask dialect)))
    (except [error ToolsRefusedError]
      (setv #(dialect note) (fall-back messages dialect table search (str error))
            completion (await (ask dialect)))))
  (setv reading (.read dialect completion table))
  (.append messages "assistant" reading.content :calls (sound-calls completion.calls completion.finish)
           :kept completion.kept)
  (Thought completion.text reading completion.usage completion.finish dialect
           (.strip f"{note} {completion.note}")))
