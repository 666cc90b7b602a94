package sheet

import ("testing";"os";"sshpace/internal/bench";"sshpace/internal/rank";"sshpace/internal/chart")

func TestZZ(t *testing.T){
 f,err:=os.Open("/tmp/reports-real.jsonl"); if err!=nil{t.Fatal(err)}
 b,err:=bench.Load(f); if err!=nil{t.Fatal(err)}
 r,err:=rank.Of(b,rank.Options{}); if err!=nil{t.Fatal(err)}
 o,_:=os.Create("/tmp/rep/real.xlsx")
 if err:=Write(o,chart.OfRanking(r,b),b); err!=nil{t.Fatal(err)}
}
