package generate

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"starling/disk"
	"starling/graph"
	"starling/rng"
)

// FraudKind is the generator of two tables: accounts, about one in fifty of them fraudulent, and payments between
// them.
//
//	accounts.csv   account, days_open, country, kind, income, device_age, decided, fraud
//	payments.csv   payer, payee, amount, kind, paid
//
// An account was decided on at a time, from its columns and what was paid until then. The columns alone tell little.
// Fraudulent accounts collect: many payments from new payers, just below a limit, by transfer, out of accounts like
// those that others are hit by, in the weeks before the decision. Some accounts are paid much and are no fraud
// (shops),
// so that the number of payments is no answer either. After the decision victims get their money back, which says all
// and is of no use on the day of the decision: it is what a model must not see.
const FraudKind = "fraud"

// fraudFiles are the tables.
const accountsFile, paymentsFile = "accounts.csv", "payments.csv"

const (
	fraudShare    = 0.02
	shopShare     = 0.03
	firstDay      = 19358 // 1 January 2023, in days since 1970
	days          = 360
	daySeconds    = 24 * 60 * 60
	limit         = 1000 // payments below it are not looked at by a person
	refundPerPaid = 0.7
)

// fraud draws the tables from keys of each account.
type fraud struct {
	n    int
	key  rng.Key
	kind []uint8 // of an account
}

const (
	plainAccount = iota
	shopAccount
	fraudAccount
)

func newFraud(n int, seed uint64) *fraud {
	f := &fraud{n: n, key: rng.New(seed).Fold(fraudStream)}
	for v := range uint64(n) {
		switch x := f.key.Fold(0).Float64(v); {
		case x < fraudShare:
			f.kind = append(f.kind, fraudAccount)
		case x < fraudShare+shopShare:
			f.kind = append(f.kind, shopAccount)
		default:
			f.kind = append(f.kind, plainAccount)
		}
	}
	return f
}

// decided is the second that an account was decided at.
func (f *fraud) decided(v int) int64 {
	day := 60 + f.key.Fold(1).IntN(uint64(v), days-60)
	return int64(firstDay+day)*daySeconds + int64(f.key.Fold(2).IntN(uint64(v), daySeconds))
}

func pick(k rng.Key, i uint64, words ...string) string { return words[k.IntN(i, len(words))] }

// accounts writes the table of accounts. One income in twenty is missing.
func (f *fraud) accounts(w io.Writer) error {
	fmt.Fprintln(w, "account,days_open,country,kind,income,device_age,decided,fraud")
	for v := range f.n {
		i, k := uint64(v), f.key.Fold(3)
		open := 30 + k.Fold(0).IntN(i, 1500)
		if f.kind[v] == fraudAccount && k.Fold(1).Float64(i) < 0.4 { // rather new, as many others are
			open = 30 + k.Fold(2).IntN(i, 400)
		}
		income := fmt.Sprintf("%.0f", 26000+9000*k.Fold(3).Normal(i))
		if k.Fold(4).Float64(i) < 0.05 {
			income = ""
		}
		sort := pick(k.Fold(5), i, "private", "private", "private", "business")
		if f.kind[v] == shopAccount {
			sort = "business"
		}
		label := "no"
		if f.kind[v] == fraudAccount {
			label = "yes"
		}
		if _, err := fmt.Fprintf(w, "A%05d,%d,%s,%s,%s,%d,%s,%s\n", v, open,
			pick(k.Fold(6), i, "DE", "FR", "ES", "IT", "PL", "NL"), sort, income, k.Fold(7).IntN(i, 1200),
			timeText(f.decided(v)), label); err != nil {
			return err
		}
	}
	return nil
}

func timeText(t int64) string { return time.Unix(t, 0).UTC().Format("2006-01-02 15:04:05") }

// payments writes the table of payments, by payee.
func (f *fraud) payments(w io.Writer) (rows int64, err error) {
	fmt.Fprintln(w, "payer,payee,amount,kind,paid")
	put := func(payer, payee int, amount float64, kind string, at int64) {
		if payer == payee || err != nil {
			return
		}
		rows++
		_, err = fmt.Fprintf(w, "A%05d,A%05d,%.2f,%s,%s\n", payer, payee, amount, kind, timeText(at))
	}
	for v := range f.n {
		i := uint64(v)
		k := f.key.Fold(4).Fold(i)
		until := f.decided(v)
		ordinary := 2 + k.Fold(0).IntN(0, 5)
		if f.kind[v] == shopAccount {
			ordinary += 8 + k.Fold(0).IntN(1, 12)
		}
		for j := range uint64(ordinary) { // over the whole year: also after the decision
			at := int64(firstDay)*daySeconds + int64(k.Fold(1).IntN(j, days*daySeconds))
			amount := 20 + 400*k.Fold(2).Float64(j)*k.Fold(3).Float64(j)
			put(k.Fold(4).IntN(j, f.n), v, amount, pick(k.Fold(5), j, "card", "card", "transfer", "direct debit"), at)
		}
		if f.kind[v] != fraudAccount &&
			k.Fold(6).Float64(0) > 0.03 { // some honest accounts are paid in such a way once
			continue
		}
		collected := 3 + k.Fold(6).IntN(1, 8)
		if f.kind[v] != fraudAccount {
			collected = 1 + k.Fold(6).IntN(1, 2)
		}
		for j := range uint64(collected) {
			at := until - 3600 - int64(k.Fold(7).IntN(j, 40*daySeconds))
			amount, payer := limit*(0.9+0.1*k.Fold(8).Float64(j)), k.Fold(9).IntN(j, f.n)
			put(payer, v, amount, pick(k.Fold(10), j, "transfer", "transfer", "card"), at)
			if f.kind[v] == fraudAccount && k.Fold(11).Float64(j) < refundPerPaid {
				put(payer, v, amount, "refund", until+int64(1+k.Fold(12).IntN(j, 20*daySeconds)))
			}
		}
	}
	return rows, err
}

// FraudTables writes the tables of FraudKind to a folder.
func FraudTables(p Params, out string) (accounts int, payments int64, err error) {
	if p.Nodes < 100 || p.Nodes > 10_000_000 {
		return 0, 0, badParam("nodes", fmt.Sprint(p.Nodes), "100 to 10000000 accounts")
	}
	if _, err := os.Lstat(out); err == nil && !p.Overwrite {
		return 0, 0, &graph.InputError{File: out, Found: "something of this name", Want: "a new folder",
			Fix: "choose another, or give --overwrite"}
	}
	folder, err := graph.NewFolder(out)
	if err != nil {
		return 0, 0, err
	}
	defer folder.Abort()
	f := newFraud(int(p.Nodes), p.Seed)
	if err := disk.Write(filepath.Join(folder.Tmp, accountsFile), buffered(f.accounts)); err != nil {
		return 0, 0, err
	}
	if err := disk.Write(filepath.Join(folder.Tmp, paymentsFile), buffered(func(w io.Writer) (err error) {
		payments, err = f.payments(w)
		return err
	})); err != nil {
		return 0, 0, err
	}
	return f.n, payments, folder.Commit()
}

// buffered writes through a buffer.
func buffered(write func(w io.Writer) error) func(w io.Writer) error {
	return func(w io.Writer) error {
		b := bufio.NewWriterSize(w, 1<<20)
		if err := write(b); err != nil {
			return err
		}
		return b.Flush()
	}
}
