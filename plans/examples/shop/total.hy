(setv days ["monday.txt" "tuesday.txt"])
(setv totals (lfor text (pmap read-file days)
  (sum (lfor line (.splitlines text) (int (last (.split line)))))))
(write-file :path "total.txt" :content (str (sum totals)))
