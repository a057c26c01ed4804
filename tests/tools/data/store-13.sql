-- A store as the version wrote it that still had its files in flat folders: session apples is a run that has
-- ended, in session pears a call of a run waits, in session plums a call of a program.
CREATE TABLE audit (
        seq INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        ts TEXT NOT NULL,
        session TEXT NOT NULL,
        user TEXT NOT NULL,
        route TEXT NOT NULL,
        parent TEXT,
        depth INTEGER NOT NULL,
        round INTEGER NOT NULL,
        place INTEGER NOT NULL,
        tool TEXT NOT NULL,
        digest TEXT NOT NULL,
        status TEXT NOT NULL,
        stage TEXT NOT NULL,
        duration_ms INTEGER NOT NULL,
        side_effects TEXT NOT NULL
    , policy TEXT NOT NULL DEFAULT '', rule TEXT NOT NULL DEFAULT '', guard TEXT NOT NULL DEFAULT '', gate TEXT NOT NULL DEFAULT '', consent TEXT NOT NULL DEFAULT '', message TEXT NOT NULL DEFAULT '', form TEXT NOT NULL DEFAULT '', schema_hash TEXT NOT NULL DEFAULT '', prev TEXT NOT NULL DEFAULT '', hash TEXT NOT NULL DEFAULT '', repairs TEXT NOT NULL DEFAULT '') STRICT;
INSERT INTO "audit" VALUES(1,'0bb27aa936','2026-11-22T18:26:16.066+00:00','apples','ann','reply',NULL,0,1,0,'read-file','76c59854f6799a8ab72228a7088c298f87752837e43ca43352f62d882b682b70','ok','body',1,'[]','allow','','allow','','','','(read-file :path "notes.txt")','2ec7fb1eaa7bf9ed3aae38ae6e69bc742c72db23b80b4dde06edf5801efcad8b','','75b36cbf6f4dba311639e58d15d77580715129c8a3c7ab64c05ad5db3fc78a24','');
INSERT INTO "audit" VALUES(2,'8ae46ad6d3','2026-11-22T18:26:16.132+00:00','pears','ann','reply',NULL,0,1,0,'read-file','76c59854f6799a8ab72228a7088c298f87752837e43ca43352f62d882b682b70','ok','body',19,'[]','allow','','allow','','','','(read-file :path "notes.txt")','2ec7fb1eaa7bf9ed3aae38ae6e69bc742c72db23b80b4dde06edf5801efcad8b','75b36cbf6f4dba311639e58d15d77580715129c8a3c7ab64c05ad5db3fc78a24','4669f5ba4f9480267b0ffe6e518d93a8648600465c1ce2c5f2603823b6d6b9fb','');
INSERT INTO "audit" VALUES(3,'6304e32cf7','2026-11-22T18:26:16.156+00:00','pears','ann','reply',NULL,0,1,1,'write-file','95947cae1957c1bbbc538da6017428cc26bb6369f93ae4902e46117ff03f825e','pending','consent',6,'[]','ask: it writes files','','allow','','pending','write-file waits for a person''s approval: it writes files (request h33bc).','(write-file :content "Two pears.\n" :path "pears.txt")','2ec7fb1eaa7bf9ed3aae38ae6e69bc742c72db23b80b4dde06edf5801efcad8b','4669f5ba4f9480267b0ffe6e518d93a8648600465c1ce2c5f2603823b6d6b9fb','3d6b41ff11f3e4ab203843efe2ea03af98c51e74f811430e0ce11b0d0746616e','');
INSERT INTO "audit" VALUES(4,'366a330979','2026-11-22T18:26:16.257+00:00','plums','ann','program','7a8bf58b03',1,0,0,'read-file','76c59854f6799a8ab72228a7088c298f87752837e43ca43352f62d882b682b70','ok','body',1,'[]','allow','','allow','','','','(read-file :path "notes.txt")','2ec7fb1eaa7bf9ed3aae38ae6e69bc742c72db23b80b4dde06edf5801efcad8b','3d6b41ff11f3e4ab203843efe2ea03af98c51e74f811430e0ce11b0d0746616e','8bc502eff86343fe03e4f9f8e6863324448ca90ef0ae63430d56f99580d2020c','');
INSERT INTO "audit" VALUES(5,'c4c6e8959f','2026-11-22T18:26:16.262+00:00','plums','ann','program','7a8bf58b03',1,0,0,'write-file','169df52b204aff924bbab5d32145b36c4052d92070f2fdbd5df0aa833a922779','pending','consent',6,'[]','ask: it writes files','','allow','','pending','write-file waits for a person''s approval: it writes files (request 7nv6s).','(write-file :content "Three apples.\nOne plum.\n" :path "plums.txt")','2ec7fb1eaa7bf9ed3aae38ae6e69bc742c72db23b80b4dde06edf5801efcad8b','8bc502eff86343fe03e4f9f8e6863324448ca90ef0ae63430d56f99580d2020c','4f804c451720ef6120b432805a636a403406e40e95269ee745c8925f130ae415','');
INSERT INTO "audit" VALUES(6,'7a8bf58b03','2026-11-22T18:26:16.216+00:00','plums','ann','python',NULL,0,0,0,'eval','d036f8f6082cf7be78c792814b96ab40a9756f22e23b32f4a7f69cde1ed052ab','pending','body',68,'[]','allow','','','','','write-file waits for a person''s approval: it writes files (request 7nv6s).','(eval :form (do (setv found (read-file "notes.txt")) (write-file "plums.txt" (+ found "One plum.\n")) (len found)))','2ec7fb1eaa7bf9ed3aae38ae6e69bc742c72db23b80b4dde06edf5801efcad8b','4f804c451720ef6120b432805a636a403406e40e95269ee745c8925f130ae415','06b33f455033d6d346328bf4c24774f025ab2eb4ee073b4f3664590f2e3cb0fc','');
CREATE TABLE audit_head (
        id INTEGER PRIMARY KEY CHECK (id = 1),
        seq INTEGER NOT NULL,
        hash TEXT NOT NULL
    ) STRICT;
INSERT INTO "audit_head" VALUES(1,6,'06b33f455033d6d346328bf4c24774f025ab2eb4ee073b4f3664590f2e3cb0fc');
CREATE TABLE events (
        session TEXT NOT NULL,
        seq INTEGER NOT NULL,
        at TEXT NOT NULL,
        run TEXT NOT NULL,
        kind TEXT NOT NULL,
        parent INTEGER NOT NULL,
        key TEXT NOT NULL,
        form TEXT NOT NULL,
        shown TEXT,
        digest TEXT NOT NULL,
        status TEXT NOT NULL,
        PRIMARY KEY (session, seq)
    ) STRICT, WITHOUT ROWID;
INSERT INTO "events" VALUES('apples',1,'2026-11-22T18:26:16.032+00:00','','session',0,'','(session :seq 1 :at "2026-11-22T18:26:16.032+00:00" :user "ann" :tools [] :model None :base-url None :policy None :limits {"steps" 25  "calls" 100  "repeats" 3  "window" 300.0  "faults" 3  "result_chars" 6000  "tokens" 600  "context" None} :dialect None :belt "full" :versions {"cognitive-loop" "8f0f9773c2fdf7e9"  "echo" "473b00b0e440612a"  "edit-file" "04d0bc0ed59d7f3a"  "eval" "4c41b350af0eb054"  "grep-search" "bd8922c1afd88394"  "list-files" "127d7dce54abcf07"  "more" "b65da51d516e7e39"  "read-file" "65741a6689966ce3"  "think" "4413fef93e1e41ed"  "write-file" "a6b39a76a9a913d7"} :rules "4f53cda18c2baa0c")',NULL,'3d68f22ed39cb6eddb8b2d9127931231c21ea87a21925d05e19b56fa174d3c80','');
INSERT INTO "events" VALUES('apples',2,'2026-11-22T18:26:16.036+00:00','r1','stimulus',0,'','(stimulus :seq 2 :at "2026-11-22T18:26:16.036+00:00" :run "r1" :text "How many apples are there?" :user "ann" :turn "" :model "scripted" :takes-grammar False :tool-view "openai" :context None :dialect "call-form" :in-text True :search False :must-act False :limits {"steps" 25  "calls" 100  "repeats" 3  "window" 300.0  "faults" 3  "result_chars" 6000  "tokens" 600  "context" None})',NULL,'6da74173421d1edfc1fb810fd499f16f2a542b80ed9458ea507afaad1401243b','');
INSERT INTO "events" VALUES('apples',3,'2026-11-22T18:26:16.051+00:00','r1','request',0,'','(request :seq 3 :at "2026-11-22T18:26:16.051+00:00" :run "r1" :talk 1 :from 0 :messages [{"role" "system"  "content" "AVAILABLE TOOLS:\nYou can call a tool by writing a Lisp form on a line of its own: (<name> :<parameter> <value> …)\n\n- echo: Return the text unchanged. Only for tests.\n  Parameters: :text str (What to return)\n  Example: (echo :text \"hello\")\n\n- edit-file: Replace one piece of a text file by another.\n  Parameters: :path str (File), :old str (Exact text to replace; it must occur once), :new str (Text to put there), :all bool = False (Replace every occurrence)\n  Example: (edit-file :path \"setup.cfg\" :old \"version = 1\" :new \"version = 2\")\n\n- eval: Compute with values you have seen: run a Lisp program (Hy), get its last value. The operator comes first: 2 + 3 * 4 is (+ 2 (* 3 4)). The other tools are functions in it.\n  Parameters: :form form (The program)\n  Example: (eval :form (+ (* 12 3) 7))\n  Example: (eval :form (sum [4 5 6]))\n\n- grep-search: Search the files under PATH for a regular expression. Each hit has path, line and text.\n  Parameters: :pattern str (Regular expression), :path str = \".\" (File or folder), :glob str = \"*\" (Only files so named, such as *.py), :limit int = 50 (At most so many hits)\n  Example: (grep-search :pattern \"def main\" :path \"src\")\n\n- list-files: List the files in a folder and its subfolders.\n  Parameters: :path str = \".\" (Folder), :pattern str = \"*\" (Glob such as *.py), :limit int = 500 (At most so many)\n  Example: (list-files :path \"src\" :pattern \"*.py\")\n\n- more: Show more of a result of which a part was left out.\n  Parameters: :id str (As it stands there), :start int = 1 (First character)\n\n- read-file: Read a text file.\n  Parameters: :path str (File), :start int = 1 (First line), :limit int = 2000 (At most so many lines)\n  Example: (read-file :path \"README.org\")\n\n- write-file: Write a text file, making it or replacing all of it.\n  Parameters: :path str (File), :content str (The whole new text)\n  Example: (write-file :path \"notes.txt\" :content \"one\\ntwo\\n\")\nHOW TO WORK:\nYou know nothing of the files here: look before you answer, and never guess.\n- If the task names a file, begin with read-file. To find out which files hold a word, use grep-search.\n- To change a file, use edit-file; to make one, write-file.\n- To compute, use eval; never compute in your head.\nReply with one call and nothing else; its result is the next message. Then make the next call, or answer.\nWhen the results answer the task, reply in one plain sentence.\n\nEXAMPLE:\nTask: Which colour does a.txt name, and how many lines of b.txt hold it?\n(read-file :path \"a.txt\")\nResult: The colour is green.\n(grep-search :pattern \"green\" :path \"b.txt\")\nResult: 2 items\nThe colour is green, and 2 lines of b.txt hold it."} {"role" "user"  "content" "How many apples are there?"}])',NULL,'2e8758b3ac1bc99bb2318457a740b35c795460cbdfd8e13200d7aa81b207fb07','');
INSERT INTO "events" VALUES('apples',4,'2026-11-22T18:26:16.052+00:00','r1','reply',3,'','(reply :seq 4 :at "2026-11-22T18:26:16.052+00:00" :run "r1" :parent 3 :text "(read-file \"notes.txt\")" :usage {})',NULL,'c92aa72f4473e8b4770c0e25e8da307c339de3d3fd1f6872c47357cf0e7c231a','');
INSERT INTO "events" VALUES('apples',5,'2026-11-22T18:26:16.068+00:00','r1','call',4,'r1/1.0','(call :seq 5 :at "2026-11-22T18:26:16.068+00:00" :run "r1" :parent 4 :key "r1/1.0" :id "0bb27aa936" :form (read-file :path "notes.txt") :version "1c6a1570b9bdcce8")',NULL,'00b3efacd276b83bcd6e74549e6bb16e8a8a307026e548f64caf2e0b6f6cbb04','');
INSERT INTO "events" VALUES('apples',6,'2026-11-22T18:26:16.068+00:00','r1','receipt',5,'r1/1.0','(receipt :seq 6 :at "2026-11-22T18:26:16.068+00:00" :run "r1" :parent 5 :key "r1/1.0" :id "0bb27aa936" :status "ok" :value "Three apples.\n")',NULL,'0d6b42c5724f16e0e534c6a4e3adf3ed85181b82cceb2cf277f6d20506f8953a','ok');
INSERT INTO "events" VALUES('apples',7,'2026-11-22T18:26:16.080+00:00','r1','request',4,'','(request :seq 7 :at "2026-11-22T18:26:16.080+00:00" :run "r1" :parent 4 :talk 1 :from 3 :messages [{"role" "tool"  "content" "(read-file \"notes.txt\") -> ok:\nThree apples.\n"} {"role" "user"  "content" "How many apples are there?\nIf you know it now, say it in one plain sentence. If not, make the next call."}])',NULL,'4721ff19156387e1411f2dd4a7c5b5539b3708858894197c108f3e9a0a82448b','');
INSERT INTO "events" VALUES('apples',8,'2026-11-22T18:26:16.084+00:00','r1','reply',7,'','(reply :seq 8 :at "2026-11-22T18:26:16.084+00:00" :run "r1" :parent 7 :text "There are three apples." :usage {})',NULL,'e8284e70e942031d45a5dea878be5b4aff8f0c55cb95f7511bb1e5f7da29c286','');
INSERT INTO "events" VALUES('apples',9,'2026-11-22T18:26:16.088+00:00','r1','end',8,'','(end :seq 9 :at "2026-11-22T18:26:16.088+00:00" :run "r1" :parent 8 :status "done" :text "There are three apples." :steps 2)',NULL,'83bf0f46e12379d8c2c9bf727d35a1b9e2ff1461cd42a1b32fb6c694fee8d975','done');
INSERT INTO "events" VALUES('pears',1,'2026-11-22T18:26:16.116+00:00','','session',0,'','(session :seq 1 :at "2026-11-22T18:26:16.116+00:00" :user "ann" :tools [] :model None :base-url None :policy None :limits {"steps" 25  "calls" 100  "repeats" 3  "window" 300.0  "faults" 3  "result_chars" 6000  "tokens" 600  "context" None} :dialect None :belt "full" :versions {"cognitive-loop" "8f0f9773c2fdf7e9"  "echo" "473b00b0e440612a"  "edit-file" "04d0bc0ed59d7f3a"  "eval" "4c41b350af0eb054"  "grep-search" "bd8922c1afd88394"  "list-files" "127d7dce54abcf07"  "more" "b65da51d516e7e39"  "read-file" "65741a6689966ce3"  "think" "4413fef93e1e41ed"  "write-file" "a6b39a76a9a913d7"} :rules "4f53cda18c2baa0c")',NULL,'0c757ddaf6cc4ee1cedf2df8240e2c5033369b5bd671a8526e89d4399685e230','');
INSERT INTO "events" VALUES('pears',2,'2026-11-22T18:26:16.120+00:00','r1','stimulus',0,'','(stimulus :seq 2 :at "2026-11-22T18:26:16.120+00:00" :run "r1" :text "Write down that there are two pears." :user "ann" :turn "" :model "scripted" :takes-grammar False :tool-view "openai" :context None :dialect "call-form" :in-text True :search False :must-act False :limits {"steps" 25  "calls" 100  "repeats" 3  "window" 300.0  "faults" 3  "result_chars" 6000  "tokens" 600  "context" None})',NULL,'f3c69d9b943456fa0107cfb7176a74db45c74a26cc25d19efda493023970792b','');
INSERT INTO "events" VALUES('pears',3,'2026-11-22T18:26:16.123+00:00','r1','request',0,'','(request :seq 3 :at "2026-11-22T18:26:16.123+00:00" :run "r1" :talk 1 :from 0 :messages [{"role" "system"  "content" "AVAILABLE TOOLS:\nYou can call a tool by writing a Lisp form on a line of its own: (<name> :<parameter> <value> …)\n\n- echo: Return the text unchanged. Only for tests.\n  Parameters: :text str (What to return)\n  Example: (echo :text \"hello\")\n\n- edit-file: Replace one piece of a text file by another.\n  Parameters: :path str (File), :old str (Exact text to replace; it must occur once), :new str (Text to put there), :all bool = False (Replace every occurrence)\n  Example: (edit-file :path \"setup.cfg\" :old \"version = 1\" :new \"version = 2\")\n\n- eval: Compute with values you have seen: run a Lisp program (Hy), get its last value. The operator comes first: 2 + 3 * 4 is (+ 2 (* 3 4)). The other tools are functions in it.\n  Parameters: :form form (The program)\n  Example: (eval :form (+ (* 12 3) 7))\n  Example: (eval :form (sum [4 5 6]))\n\n- grep-search: Search the files under PATH for a regular expression. Each hit has path, line and text.\n  Parameters: :pattern str (Regular expression), :path str = \".\" (File or folder), :glob str = \"*\" (Only files so named, such as *.py), :limit int = 50 (At most so many hits)\n  Example: (grep-search :pattern \"def main\" :path \"src\")\n\n- list-files: List the files in a folder and its subfolders.\n  Parameters: :path str = \".\" (Folder), :pattern str = \"*\" (Glob such as *.py), :limit int = 500 (At most so many)\n  Example: (list-files :path \"src\" :pattern \"*.py\")\n\n- more: Show more of a result of which a part was left out.\n  Parameters: :id str (As it stands there), :start int = 1 (First character)\n\n- read-file: Read a text file.\n  Parameters: :path str (File), :start int = 1 (First line), :limit int = 2000 (At most so many lines)\n  Example: (read-file :path \"README.org\")\n\n- write-file: Write a text file, making it or replacing all of it.\n  Parameters: :path str (File), :content str (The whole new text)\n  Example: (write-file :path \"notes.txt\" :content \"one\\ntwo\\n\")\nHOW TO WORK:\nYou know nothing of the files here: look before you answer, and never guess.\n- If the task names a file, begin with read-file. To find out which files hold a word, use grep-search.\n- To change a file, use edit-file; to make one, write-file.\n- To compute, use eval; never compute in your head.\nReply with one call and nothing else; its result is the next message. Then make the next call, or answer.\nWhen the results answer the task, reply in one plain sentence.\n\nEXAMPLE:\nTask: Which colour does a.txt name, and how many lines of b.txt hold it?\n(read-file :path \"a.txt\")\nResult: The colour is green.\n(grep-search :pattern \"green\" :path \"b.txt\")\nResult: 2 items\nThe colour is green, and 2 lines of b.txt hold it."} {"role" "user"  "content" "Write down that there are two pears."}])',NULL,'447f10afec18e7fa37e2baceb766fdc067d466ff72c620d3b2c72fbdaede2203','');
INSERT INTO "events" VALUES('pears',4,'2026-11-22T18:26:16.128+00:00','r1','reply',3,'','(reply :seq 4 :at "2026-11-22T18:26:16.128+00:00" :run "r1" :parent 3 :text "(read-file \"notes.txt\") (write-file \"pears.txt\" \"Two pears.\\n\")" :usage {})',NULL,'70ec5c3ab313632cb6c086e210f1193174d3ee9bcd3f15d635ac6373a38d48a2','');
INSERT INTO "events" VALUES('pears',5,'2026-11-22T18:26:16.153+00:00','r1','call',4,'r1/1.0','(call :seq 5 :at "2026-11-22T18:26:16.153+00:00" :run "r1" :parent 4 :key "r1/1.0" :id "8ae46ad6d3" :form (read-file :path "notes.txt") :version "1c6a1570b9bdcce8")',NULL,'2d58f6e95134400068c42a97965e9ed9d667a875fbef7754755d16c43f5403df','');
INSERT INTO "events" VALUES('pears',6,'2026-11-22T18:26:16.153+00:00','r1','receipt',5,'r1/1.0','(receipt :seq 6 :at "2026-11-22T18:26:16.153+00:00" :run "r1" :parent 5 :key "r1/1.0" :id "8ae46ad6d3" :status "ok" :value "Three apples.\n")',NULL,'33c565617c5077cfb1183c2ca68208066fac145cf6f7a8626995d130c59e3cb2','ok');
INSERT INTO "events" VALUES('pears',7,'2026-11-22T18:26:16.163+00:00','r1','call',4,'r1/1.1','(call :seq 7 :at "2026-11-22T18:26:16.163+00:00" :run "r1" :parent 4 :key "r1/1.1" :id "6304e32cf7" :form (write-file :path "pears.txt" :content "Two pears.\n") :version "105b939997907a32" :does ["writes"])',NULL,'8d819e069cf35f58b4a142fa2b6e986d8ef145cd906ac38fc295457e7161aee0','');
INSERT INTO "events" VALUES('pears',8,'2026-11-22T18:26:16.163+00:00','r1','receipt',7,'r1/1.1','(receipt :seq 8 :at "2026-11-22T18:26:16.163+00:00" :run "r1" :parent 7 :key "r1/1.1" :id "6304e32cf7" :status "pending" :message "write-file waits for a person''s approval: it writes files (request h33bc)." :stage "consent")',NULL,'fcbb5c20bbed96adadad9a244b3a528dbe2f5293d81b57a363d7dfd82c91f2db','pending');
INSERT INTO "events" VALUES('pears',9,'2026-11-22T18:26:16.168+00:00','r1','end',4,'','(end :seq 9 :at "2026-11-22T18:26:16.168+00:00" :run "r1" :parent 4 :status "pending" :text "write-file waits for a person''s approval: it writes files (request h33bc)." :steps 1 :from 3 :messages [{"role" "tool"  "content" "(read-file \"notes.txt\") -> ok:\nThree apples.\n\n\n(write-file \"pears.txt\" \"Two pears.\\n\") -> pending: write-file waits for a person''s approval: it writes files (request h33bc)."}])',NULL,'823e6cc882c85981d0ef601ab4e47b5ecd909720cb7dfa2b54d554261fea0429','pending');
INSERT INTO "events" VALUES('plums',1,'2026-11-22T18:26:16.212+00:00','','session',0,'','(session :seq 1 :at "2026-11-22T18:26:16.212+00:00" :user "ann" :tools [] :model None :base-url None :policy None :limits {"steps" 25  "calls" 100  "repeats" 3  "window" 300.0  "faults" 3  "result_chars" 6000  "tokens" 600  "context" None} :dialect None :belt "full" :versions {"cognitive-loop" "8f0f9773c2fdf7e9"  "echo" "473b00b0e440612a"  "edit-file" "04d0bc0ed59d7f3a"  "eval" "4c41b350af0eb054"  "grep-search" "bd8922c1afd88394"  "list-files" "127d7dce54abcf07"  "more" "b65da51d516e7e39"  "read-file" "65741a6689966ce3"  "think" "4413fef93e1e41ed"  "write-file" "a6b39a76a9a913d7"} :rules "4f53cda18c2baa0c")',NULL,'e1b856b736e91d26d618e5103fb776c4bad44e85a1d3e954f676ac9af3cb1f5b','');
INSERT INTO "events" VALUES('plums',2,'2026-11-22T18:26:16.259+00:00','','call',0,'7a8bf58b03','(call :seq 2 :at "2026-11-22T18:26:16.259+00:00" :key "7a8bf58b03" :id "7a8bf58b03" :form (eval :form (do (setv found (read-file "notes.txt")) (write-file "plums.txt" (+ found "One plum.\n")) (len found))) :route "python" :user "ann" :version "27c5aa1a3c8a7587")',NULL,'ce66d4247279bb59dd75de0f7d7364cfed07915067402c8edb7a94c3fed54703','');
INSERT INTO "events" VALUES('plums',3,'2026-11-22T18:26:16.259+00:00','','call',2,'7a8bf58b03/808731c3c69391eb.1','(call :seq 3 :at "2026-11-22T18:26:16.259+00:00" :parent 2 :key "7a8bf58b03/808731c3c69391eb.1" :id "366a330979" :form (read-file :path "notes.txt") :route "program" :user "ann" :version "1c6a1570b9bdcce8")',NULL,'00895388cd0ce7233e7427619e671ff55c2167937c1418f178a3df3d9a39d21a','');
INSERT INTO "events" VALUES('plums',4,'2026-11-22T18:26:16.260+00:00','','receipt',3,'7a8bf58b03/808731c3c69391eb.1','(receipt :seq 4 :at "2026-11-22T18:26:16.260+00:00" :parent 3 :key "7a8bf58b03/808731c3c69391eb.1" :id "366a330979" :status "ok" :value "Three apples.\n")',NULL,'516eeb67c9fbb083ac6b9ec2bc94210ef7b4c32da3b76dce9ef326cb512a1583','ok');
INSERT INTO "events" VALUES('plums',5,'2026-11-22T18:26:16.268+00:00','','call',2,'7a8bf58b03/b8f8258a809b8ebf.1','(call :seq 5 :at "2026-11-22T18:26:16.268+00:00" :parent 2 :key "7a8bf58b03/b8f8258a809b8ebf.1" :id "c4c6e8959f" :form (write-file :path "plums.txt" :content "Three apples.\nOne plum.\n") :route "program" :user "ann" :version "105b939997907a32" :does ["writes"])',NULL,'b241d0cf23d8bf1b724901958d88b159db1d6ec3f20b988aec9ac066b0e2f49c','');
INSERT INTO "events" VALUES('plums',6,'2026-11-22T18:26:16.268+00:00','','receipt',5,'7a8bf58b03/b8f8258a809b8ebf.1','(receipt :seq 6 :at "2026-11-22T18:26:16.268+00:00" :parent 5 :key "7a8bf58b03/b8f8258a809b8ebf.1" :id "c4c6e8959f" :status "pending" :message "write-file waits for a person''s approval: it writes files (request 7nv6s)." :stage "consent")',NULL,'c4e1a17f49a10864d429d30c49b2ccf36fd140a3f6a735453420c7ad50aedaeb','pending');
INSERT INTO "events" VALUES('plums',7,'2026-11-22T18:26:16.284+00:00','','receipt',2,'7a8bf58b03','(receipt :seq 7 :at "2026-11-22T18:26:16.284+00:00" :parent 2 :key "7a8bf58b03" :id "7a8bf58b03" :status "pending" :message "write-file waits for a person''s approval: it writes files (request 7nv6s).")',NULL,'991b481f0909bb0b441e0721e5d70222870a6ea227b3a6a98129a09cc9ee446b','pending');
CREATE TABLE grants (
        seq INTEGER PRIMARY KEY,
        request TEXT NOT NULL,
        digest TEXT NOT NULL,
        tool TEXT NOT NULL,
        rule TEXT NOT NULL,
        user TEXT NOT NULL,
        session TEXT NOT NULL,
        granter TEXT NOT NULL,
        granted REAL NOT NULL,
        expires REAL NOT NULL
    ) STRICT;
CREATE TABLE imported (
        session TEXT PRIMARY KEY,
        events INTEGER NOT NULL
    ) STRICT;
CREATE TABLE plan_steps (
        seq INTEGER PRIMARY KEY,
        plan TEXT NOT NULL,
        step TEXT NOT NULL,
        digest TEXT NOT NULL,
        tools TEXT NOT NULL,
        decision TEXT NOT NULL,
        user TEXT NOT NULL,
        at REAL NOT NULL,
        why TEXT NOT NULL
    , body TEXT NOT NULL DEFAULT '', seen TEXT NOT NULL DEFAULT '[]') STRICT;
CREATE TABLE plans (
        request TEXT PRIMARY KEY,
        program TEXT NOT NULL,
        shapes TEXT NOT NULL,
        text TEXT NOT NULL
    ) STRICT;
CREATE TABLE receipts (
        seq INTEGER PRIMARY KEY,
        key TEXT NOT NULL,
        session TEXT NOT NULL,
        message TEXT NOT NULL,
        digest TEXT NOT NULL,
        version TEXT NOT NULL,
        call TEXT NOT NULL,
        at REAL NOT NULL,
        repeats INTEGER NOT NULL,
        changed INTEGER NOT NULL,
        status TEXT NOT NULL,
        result TEXT NOT NULL
    ) STRICT;
INSERT INTO "receipts" VALUES(1,'apples/r1/1.0','apples','How many apples are there?','5da1ea297ee282b1cd56dfcf398b8daad8fd1955d018dcf7ff8e249418e11ef2','1c6a1570b9bdcce8090bb3762fd37b02b5b0e23c4f722102c62f8d0b6c097718','0bb27aa936',1.79537197606806516649e+09,1,0,'ok','{"value": "Three apples.\n", "message": ""}');
INSERT INTO "receipts" VALUES(2,'pears/r1/1.0','pears','Write down that there are two pears.','5da1ea297ee282b1cd56dfcf398b8daad8fd1955d018dcf7ff8e249418e11ef2','1c6a1570b9bdcce8090bb3762fd37b02b5b0e23c4f722102c62f8d0b6c097718','8ae46ad6d3',1.79537197615294837949e+09,1,0,'ok','{"value": "Three apples.\n", "message": ""}');
INSERT INTO "receipts" VALUES(3,'plums/7a8bf58b03/808731c3c69391eb.1','plums','','5da1ea297ee282b1cd56dfcf398b8daad8fd1955d018dcf7ff8e249418e11ef2','1c6a1570b9bdcce8090bb3762fd37b02b5b0e23c4f722102c62f8d0b6c097718','366a330979',1.79537197628471851349e+09,0,0,'ok','{"value": "Three apples.\n", "message": ""}');
CREATE TABLE requests (
        seq INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        digest TEXT NOT NULL,
        tool TEXT NOT NULL,
        version TEXT NOT NULL,
        form TEXT NOT NULL,
        shown TEXT NOT NULL,
        reason TEXT NOT NULL,
        touches TEXT NOT NULL,
        user TEXT NOT NULL,
        session TEXT NOT NULL,
        route TEXT NOT NULL,
        call TEXT NOT NULL,
        parent TEXT,
        message TEXT NOT NULL,
        rule TEXT NOT NULL,
        asked REAL NOT NULL,
        expires REAL NOT NULL,
        state TEXT NOT NULL,
        decision TEXT NOT NULL DEFAULT '',
        decided REAL,
        decider TEXT NOT NULL DEFAULT '',
        why TEXT NOT NULL DEFAULT '',
        edited TEXT NOT NULL DEFAULT '',
        used REAL,
        used_by TEXT NOT NULL DEFAULT ''
    ) STRICT;
INSERT INTO "requests" VALUES(1,'h33bc','0f12d7d3e9c6510d65511e829ca4c8d0ede980476eed10dc6c41928668d24925','write-file','105b939997907a32c5949621649387821cd9eed5ffb40ee359ef988da69b3b19','(write-file :content "Two pears.\n" :path "pears.txt")','(write-file :path "pears.txt" :content "Two pears.\n")','it writes files','["pears.txt"]','ann','pears','reply','6304e32cf7',NULL,'Write down that there are two pears.','(allow (write-file :path "pears.txt"))',1.79537197616150546075e+09,1.79597677616150546071e+09,'pending','',NULL,'','','',NULL,'');
INSERT INTO "requests" VALUES(2,'7nv6s','f63961673f6b17620e3ef3102997474079105fcdc79c73e9eca58623f410757f','write-file','105b939997907a32c5949621649387821cd9eed5ffb40ee359ef988da69b3b19','(write-file :content "Three apples.\nOne plum.\n" :path "plums.txt")','(write-file :path "plums.txt" :content "Three apples.\nOne plum.\n")','it writes files','["plums.txt"]','ann','plums','program','c4c6e8959f','7a8bf58b03','','(allow (write-file :path "plums.txt"))',1.79537197626359868048e+09,1.79597677626359868044e+09,'pending','',NULL,'','','',NULL,'');
CREATE TABLE snapshots (
        name TEXT PRIMARY KEY,
        session TEXT NOT NULL,
        at REAL NOT NULL,
        state BLOB NOT NULL
    ) STRICT;
CREATE TABLE texts (
        session TEXT NOT NULL,
        user TEXT NOT NULL,
        id TEXT NOT NULL,
        at REAL NOT NULL,
        text TEXT NOT NULL,
        PRIMARY KEY (session, user, id)
    ) STRICT;
CREATE TABLE uses (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        tool TEXT NOT NULL,
        user TEXT NOT NULL,
        session TEXT NOT NULL,
        call TEXT NOT NULL,
        at REAL NOT NULL,
        begun REAL
    ) STRICT;
CREATE INDEX audit_session ON audit (session, seq);
CREATE INDEX uses_at ON uses (tool, at);
CREATE INDEX uses_begun ON uses (tool, coalesce(begun, at));
CREATE INDEX requests_digest ON requests (digest, state);
CREATE INDEX requests_rule ON requests (tool, rule);
CREATE INDEX grants_session ON grants (session, tool);
CREATE INDEX receipts_key ON receipts (key);
CREATE INDEX receipts_session ON receipts (session, digest);
CREATE INDEX plans_program ON plans (program);
CREATE INDEX requests_used_by ON requests (used_by);
CREATE INDEX events_begin ON events (session, kind) WHERE kind IN ('session', 'stimulus', 'end');
CREATE INDEX events_secret ON events (session) WHERE shown IS NOT NULL;
CREATE INDEX plan_steps_plan ON plan_steps (plan, step);
CREATE INDEX events_flight ON events (session) WHERE kind = 'flight';
PRAGMA user_version = 13;
