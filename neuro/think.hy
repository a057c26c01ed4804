"think: show the model its tools and the conversation so far, and read the calls in its reply. It runs
nothing. Tool list first, then the task, then history, append-only."

(import
  dataclasses [replace]
  functools [partial]
  quoth.neuro.backends.messages [Messages]
  quoth.neuro.backends.base [NO-OPTIONS ToolsRefusedError Usage]
  quoth.neuro.prompt.dialects [CALL-FORM Dialect refusal-note sound-calls without-tools]
  quoth.neuro.reading.reply [Reading]
  quoth.tools.lazy-dataclass [dataclass])

;; * The prompt

(setv RULES CALL-FORM.rules)

(defclass [(dataclass :frozen True)] Thought []
  "A reply: its text, the calls, words and faults in it, and its token usage. `dialect` is the dialect of the
  request; if the server refused native tools it is a new one, and `note` is a message about it for the user."
  #^ str text
  #^ Reading reading
  #^ Usage usage
  (setv #^ str finish "stop")
  (setv #^ Dialect dialect CALL-FORM)
  (setv #^ str note ""))

;; * Asking

(defn begin-conversation [table * [dialect CALL-FORM] [search False] [few #()] [view None] [rules None]
                          [instructions ""] [surroundings ""]]
  "A conversation that begins with the tool list (if there is one; with names in FEW, only these tools in
  full), the SURROUNDINGS as data, and INSTRUCTIONS last. The task and later messages are appended."
  (setv messages (Messages)
        belt (.opening dialect table :search search :few few :view view :rules rules)
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
  "The name of the grammar's rule for JSON of the schema's type."
  (.get {"object" "jdict"  "array" "jlist"} (.get schema "type") "jvalue"))

(defn fall-back [messages dialect table search reason]
  "Continue in text: add a message that explains how to write calls. Returns the new dialect and a note
  for the user."
  (setv note (refusal-note dialect reason)
        dialect (without-tools dialect))
  ; It is joined to the refused messages: their text is written again anyway.
  (.add messages {"role" "user"  "content" (.opening dialect table :search search)})
  #(dialect note))

(defn :async ask-in [messages backend table dialect * must-act must-answer bounds max-tokens on-text options
                     schema]
  "The model's completion in a dialect, which the server enforces if it can."
  (setv tools (.tools dialect table backend.tool-view)
        calls-in-text (and table.shown (not must-answer) (is tools None))
        ; OpenAI accepts only the schema of an object.
        by-schema (and schema (not calls-in-text)
                       (or backend.takes-grammar (= (.get schema "type") "object"))))
  (await (ask-neuro messages backend
                    :grammar (when (and backend.takes-grammar (not by-schema))
                               (.grammar dialect table :may-answer (not must-act)
                                                       :may-call (not must-answer)
                                                       :bounds bounds
                                                       :answer (if schema (json-rule schema) "")))
                    :tools tools
                    :tool-choice (cond must-answer "none"  must-act "required"  True "auto")
                    :max-tokens max-tokens
                    :on-text on-text
                    :options (if by-schema
                               (replace (or options NO-OPTIONS) :schema schema)
                               options))))

(defn :async think [messages backend table * [dialect CALL-FORM] [search False] [must-act False]
                    [must-answer False] [bounds None] [max-tokens 1024] [on-text None] [options None]
                    [schema None]]
  "One turn of the model over MESSAGES. Appends its reply to them.

  MUST-ACT forbids an answer without a call, unless it begins with the lead of the BOUNDS; MUST-ANSWER
  forbids calls; for BOUNDS see neuro/prompt/grammar.py. A grammar enforces all of them, native tools the
  first two; with any other backend they are only words in the messages. A server that refuses native
  tools is asked again in text, after a message with the rules.

  SCHEMA is the JSON Schema of an answer. The server enforces it if the text cannot contain calls; a
  grammar for calls and answers only enforces that an answer is JSON."
  (setv note ""
        ask (partial ask-in messages backend table :must-act must-act :must-answer must-answer
                     :bounds bounds :max-tokens max-tokens :on-text on-text :options options :schema schema))
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
