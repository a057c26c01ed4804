(import asyncio)

(defn :async reply [messages]
  (await (asyncio.sleep 3))
  (if (in "Created report.txt" (str messages))
      "The report is written."
      "(write-file :path \"report.txt\" :content \"54 pieces were sold.\\n\")"))
