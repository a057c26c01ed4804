"Sending messages to people: the user of the session, and the channels that the host has named.
ctx.router delivers them."

(eval-when-compile (require quoth.tools.macros [def-cognitive-tool]))
(import
  quoth.tools.errors [ToolError ToolFailure did-you-mean]
  quoth.tools.call.services [USER])

(defn :async channels [ctx]
  "The names a message can be sent to."
  [USER #* (await (.list-channels ctx.router))])

(defn :async may-send [message to ctx ask]
  "Guard: a message to the user of the session is always allowed. A message that cannot be sent needs no
  question: the body reports the error."
  (cond
    (or (= to USER) (not (.strip message)))  True
    (in to (await (channels ctx)))  (ask f"it sends a message to the channel {to}")
    True  True))

(defn :async send [message to ctx]
  (when (not (.strip message))
    (raise (ToolFailure "invalid" "The message is empty.")))
  (setv known (await (channels ctx)))
  (when (not-in to known)
    (raise (ToolError (+ f"There is no channel {to}.{(did-you-mean to known)} "
                         f"The channels are {(.join ", " known)}."))))
  (await (.send-message ctx.router message :to to))
  (.effect ctx f"sent:{to}")
  {"success" True  "message" "Message sent successfully"})

(def-cognitive-tool send-message
  "Say something to the user. It is your reply: it ends your turn until the user answers."
  :parameters [message {:type str  :doc "What to say"}
               to      {:type str  :doc "The user, or the name of a channel"  :default "user"}]
  :effects    [:messages]
  :allow-repeat True
  :ends-turn  True
  :asks-first True
  :guard      (await (may-send message to ctx ask))
  :examples   [(send-message :message "I've updated your preferences. How else can I help?")]
  :body       (await (send message to ctx)))
