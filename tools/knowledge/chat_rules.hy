;; The rules that ship for the knowledge tools in a chat, where nobody sits at a terminal to be asked. They
;; are read as a policy whenever an agent has a knowledge base, and allow just these five tools, just to the
;; replies of a model in a chat; `quoth policy explain` shows them. Your own tighten them: (ask (claim)).

(allow (research)  (route "chat"))
(allow (source)    (route "chat"))
(allow (claim)     (route "chat"))
(allow (learning)  (route "chat"))
(allow (summarize) (route "chat"))
