package sqlserver

import (
	"time"

	"vnuma.dev/lab/internal/cost"
	"vnuma.dev/lab/internal/tsql"
)

// procedureWork is what the cost model needs about a procedure.
type procedureWork struct {
	timed bool // it only reads, and does not loop: a short call, timed by the model
	reads bool // it reads tables
}

// procedureStat is sys.dm_exec_procedure_stats of a procedure since the boot; times in microseconds.
type procedureStat struct {
	count                   int64
	worker, elapsed         float64
	lastWorker, lastElapsed float64
	last                    time.Time
}

// callLoad is the effect of short calls on the server since the boot. Guarded by Instance.mu.
//
// While sessions that have called such a procedure are connected, they count as callers in a closed loop,
// and the guest's clock advances only by the model's time of each call: rates are the model's, however
// fast the lab and its client are.
type callLoad struct {
	callers           map[int]bool // sessions that have called, while they are connected
	number            int          // number of loads so far: from the first caller's call to the last one's end
	noise             float64
	times             map[bool]cost.CallTimes // by whether tables are read, for this number of callers
	requests          int64                   // of all sessions
	fraction          float64                 // fraction of a nanosecond still to be added to the clock
	interrupt, worker float64                 // CPU microseconds on the interrupted CPU, and on workers
}

// workOf examines a procedure's statements.
func workOf(def *tsql.CreateProcedure) procedureWork {
	w := procedureWork{timed: !def.Native}
	tsql.Each(def.Body, func(st tsql.Statement) {
		switch st := st.(type) {
		case *tsql.SelectStatement:
			body, ok := st.Query.Body.(*tsql.Select)
			w.timed = w.timed && ok && body.Into == nil
			w.reads = w.reads || ok && body.From != nil
		case *tsql.Block, *tsql.Declare, *tsql.SetVariable, *tsql.SetOption:
		default:
			w.timed = false
		}
	})
	return w
}

// executed counts one execution of a procedure; the model's time passes for a short one that a client called.
func (b *batch) executed(p *userProcedure) {
	i := b.s.inst
	i.mu.Lock()
	defer i.mu.Unlock()
	var t cost.CallTimes
	if p.work.timed && b.remote {
		t = i.load.next(i, b.s.id, p.work.reads)
	}
	at := i.clock.now()
	p.ran.count++
	p.ran.last, p.ran.lastWorker, p.ran.lastElapsed = at, t.Worker, t.Worker
	p.ran.worker += t.Worker
	p.ran.elapsed += t.Worker
}

// next advances the guest's clock by the time of one more call, and returns it.
func (l *callLoad) next(i *Instance, session int, reads bool) cost.CallTimes {
	if !l.callers[session] {
		l.join(i, session)
	}
	t, known := l.times[reads]
	if !known {
		t = i.config.Cost.Call(cost.Load{Callers: len(l.callers), CPUs: len(i.usableSchedulers()), OtherNodes: i.otherNodes(), Reads: reads})
		t.Interval *= l.noise
		l.times[reads] = t
	}
	l.interrupt += t.Interrupt
	l.worker += t.Worker
	nanos := t.Interval*1000 + l.fraction
	whole := int64(nanos)
	l.fraction = nanos - float64(whole)
	i.clock.add(time.Duration(whole))
	return t
}

func (l *callLoad) join(i *Instance, session int) {
	if len(l.callers) == 0 {
		l.callers = map[int]bool{}
		l.number++
		l.noise = i.config.Cost.CallNoise(i.config.Seed, i.boot.VM, i.boot.Number, l.number)
		if slow := i.boot.Faults.SlowFactor; slow > 0 {
			l.noise *= slow
		}
		i.clock.hold()
	}
	l.callers[session] = true
	l.times = map[bool]cost.CallTimes{}
}

// leave removes a session that has ended; after the last caller the clock follows real time again.
func (l *callLoad) leave(i *Instance, session int) {
	if !l.callers[session] {
		return
	}
	delete(l.callers, session)
	l.times = map[bool]cost.CallTimes{}
	if len(l.callers) == 0 {
		i.clock.release()
	}
}

// interruptedCPU handles the network card's interrupts: the first CPU of the last node, since drivers
// choose one themselves and Chang saw CPU 10 of 16.
func (i *Instance) interruptedCPU() int {
	return i.boot.Nodes[len(i.boot.Nodes)-1][0]
}

// otherNodes is the share of the usable CPUs on other nodes than the interrupted one.
func (i *Instance) otherNodes() float64 {
	last := len(i.boot.Nodes) - 1
	all, near := 0, 0
	for n, cpus := range i.boot.Nodes {
		for _, cpu := range cpus {
			if !i.usable(cpu) {
				continue
			}
			all++
			if n == last {
				near++
			}
		}
	}
	return 1 - float64(near)/float64(all)
}

// schedulerCPU is the milliseconds that calls have taken on a CPU: the interrupted one handles the network, the
// others share the workers' time. A guest with one CPU does both on it.
func (i *Instance) schedulerCPU(cpu int) int64 {
	if !i.usable(cpu) {
		return 0
	}
	us, others := 0.0, len(i.usableSchedulers())
	interrupted := i.interruptedCPU()
	if i.usable(interrupted) {
		others--
	}
	if cpu == interrupted {
		us = i.load.interrupt
	}
	if cpu != interrupted || others == 0 {
		us += i.load.worker / float64(max(others, 1))
	}
	return int64(us / 1000)
}

// otherRequests are those of the scenario's other clients since the boot.
func (i *Instance) otherRequests() int64 {
	return int64(i.clock.now().Sub(i.started).Seconds() * i.config.Cost.Calls.OthersPerSec)
}
