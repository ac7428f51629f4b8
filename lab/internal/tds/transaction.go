package tds

import "encoding/binary"

// Transaction manager requests.
const (
	tmBegin    = 5
	tmCommit   = 7
	tmRollback = 8
)

// transaction is what the driver knows of the connection's transaction: a descriptor, 0 when there is none.
type transaction struct {
	current uint64
	last    uint64
}

// follow notes a transaction's begin or end and gives the ENVCHANGE that tells the driver; nil when nothing changed.
func (t *transaction) follow(kind TxKind) []byte {
	var descriptor [8]byte
	if (kind == TxBegin) != (t.current == 0) {
		return nil
	}
	if kind == TxBegin {
		t.last++
		t.current = t.last
		binary.LittleEndian.PutUint64(descriptor[:], t.current)
		return appendEnvBytes(nil, envBegin, descriptor[:], nil)
	}
	binary.LittleEndian.PutUint64(descriptor[:], t.current)
	t.current = 0
	if kind == TxCommit {
		return appendEnvBytes(nil, envCommit, nil, descriptor[:])
	}
	return appendEnvBytes(nil, envRollback, nil, descriptor[:])
}

// tmRequest is a transaction manager request.
type tmRequest struct {
	kind  TxKind // 0: one that this server does not know
	again bool   // begin the next transaction at once
}

func parseTransaction(data []byte) (tmRequest, error) {
	var r tmRequest
	in := &input{b: data}
	in.allHeaders()
	switch in.u16() {
	case tmBegin:
		r.kind = TxBegin
		in.u8() // isolation level
		in.take(int(in.u8()))
		return r, in.err
	case tmCommit:
		r.kind = TxCommit
	case tmRollback:
		r.kind = TxRollback
	default:
		return r, in.err
	}
	in.take(int(in.u8())) // name
	if in.more() {
		r.again = in.u8()&1 != 0
	}
	return r, in.err
}

// transact follows a transaction manager request.
func (c *connection) transact(r tmRequest, w *Writer) {
	if r.kind == 0 {
		w.Error(notSupported("this transaction manager request (distributed transactions and savepoints)"))
		return
	}
	if r.kind != TxBegin && c.tx.current == 0 {
		w.Error(noTransaction(r.kind))
	} else {
		c.session.Transaction(r.kind)
		w.Transaction(r.kind)
	}
	if r.again {
		c.session.Transaction(TxBegin)
		w.Transaction(TxBegin)
	}
}

// noTransaction is the error of a commit or rollback outside a transaction.
func noTransaction(kind TxKind) Message {
	m := Message{Number: 3902, State: 1, Class: 16, Line: 1,
		Text: "The COMMIT TRANSACTION request has no corresponding BEGIN TRANSACTION."}
	if kind == TxRollback {
		m.Number, m.Text = 3903, "The ROLLBACK TRANSACTION request has no corresponding BEGIN TRANSACTION."
	}
	return m
}

// notSupported is the error for what this server does not do.
func notSupported(what string) Message {
	return Message{Number: 50000, State: 1, Class: 16, Line: 1, Text: "This server does not support " + what + "."}
}
