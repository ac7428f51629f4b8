package sqlserver

import (
	"encoding/xml"
	"fmt"
	"hash/fnv"
	"strings"

	"vnuma.dev/lab/internal/tds"
	"vnuma.dev/lab/internal/tsql"
)

// The showplan of SET STATISTICS XML: the lab's plan in the server's terms. Costs are
// omitted, and hashes are derived from the shape of the plan.

type showplan struct {
	XMLName   xml.Name  `xml:"http://schemas.microsoft.com/sqlserver/2004/07/showplan ShowPlanXML"`
	Version   string    `xml:"Version,attr"`
	Build     string    `xml:"Build,attr"`
	Statement statement `xml:"BatchSequence>Batch>Statements>StmtSimple"`
}

type statement struct {
	Text      string    `xml:"StatementText,attr"`
	ID        int       `xml:"StatementId,attr"`
	Type      string    `xml:"StatementType,attr"`
	Rows      float64   `xml:"StatementEstRows,attr"`
	QueryHash string    `xml:"QueryHash,attr"`
	PlanHash  string    `xml:"QueryPlanHash,attr"`
	Plan      queryPlan `xml:"QueryPlan"`
}

type queryPlan struct {
	DOP  int      `xml:"DegreeOfParallelism,attr"`
	Root operator `xml:"RelOp"`
}

// operator is one RelOp.
type operator struct {
	NodeID   int        `xml:"NodeId,attr"`
	Physical string     `xml:"PhysicalOp,attr"`
	Logical  string     `xml:"LogicalOp,attr"`
	Rows     float64    `xml:"EstimateRows,attr"`
	Mode     string     `xml:"EstimatedExecutionMode,attr"`
	Parallel bool       `xml:"Parallel,attr"`
	Runtime  counters   `xml:"RunTimeInformation>RunTimeCountersPerThread"`
	Object   *object    `xml:"Object,omitempty"`
	Inputs   []operator `xml:"RelOp"`
}

type counters struct {
	Thread int    `xml:"Thread,attr"`
	Rows   int64  `xml:"ActualRows,attr"`
	Runs   int64  `xml:"ActualExecutions,attr"`
	Mode   string `xml:"ActualExecutionMode,attr"`
}

type object struct {
	Database string `xml:"Database,attr"`
	Table    string `xml:"Table,attr"`
	Index    string `xml:"Index,attr,omitempty"`
}

// drawing converts a plan to operators.
type drawing struct {
	run     *run
	noSpool bool
	nodes   int
}

// showplanXML describes the plan of a query that has just run.
func showplanXML(st *tsql.SelectStatement, p plan, r *run) string {
	kind := "SELECT"
	if intoTarget(st.Query) != nil {
		kind = "SELECT INTO"
	}
	root := rootOf(st, p, r)
	query, hash := hashesOf(root)
	out := showplan{Version: "1.539", Build: r.inst.version.text, Statement: statement{Text: kind, ID: 1, Type: kind, Rows: root.Rows,
		QueryHash: "0x" + query, PlanHash: "0x" + hash, Plan: queryPlan{DOP: degreeOf(st, p, r), Root: root}}}
	text, err := xml.Marshal(out)
	if err != nil { // every field has a form in XML
		panic(err)
	}
	return string(text)
}

// rootOf converts the whole plan.
func rootOf(st *tsql.SelectStatement, p plan, r *run) operator {
	d := &drawing{run: r, noSpool: st.Query.Hints.NoPerformanceSpool}
	root := d.operator(p, 1)
	if intoTarget(st.Query) != nil {
		root = d.over("Table Insert", "Insert", root)
	}
	if degreeOf(st, p, r) > 1 {
		root = d.over(parallelism, "Gather Streams", root)
	}
	return root
}

const parallelism = "Parallelism"

// degreeOf is how many workers run a query timed by the cost model: the number in its MAXDOP hint, but at most the
// schedulers in use. Without a hint above 1, and for anything else, one.
func degreeOf(st *tsql.SelectStatement, p plan, r *run) int {
	cross, _ := storedProduct(p)
	scan, _ := largeScanOf(p)
	if st.Query.Hints.MaxDOP <= 1 || (cross == nil && scan == nil) {
		return 1
	}
	return max(1, min(st.Query.Hints.MaxDOP, len(r.inst.usableSchedulers())))
}

// hashesOf are query hash and plan hash, both of the shape: literals do not matter. Spool and parallelism affect
// only the plan's.
func hashesOf(root operator) (query, plan string) {
	asked := root
	if root.Physical == parallelism {
		asked = root.Inputs[0]
	}
	return hash64(strings.ReplaceAll(shapeOf(asked), "Table Spool", "")), hash64(shapeOf(root))
}

func hash64(s string) string {
	h := fnv.New64a()
	h.Write([]byte(s))
	return fmt.Sprintf("%016X", h.Sum64())
}

func shapeOf(o operator) string {
	var b strings.Builder
	b.WriteString(o.Physical + "/" + o.Logical)
	if o.Object != nil {
		b.WriteString("[" + o.Object.Table + "]")
	}
	for _, in := range o.Inputs {
		b.WriteString("(" + shapeOf(in) + ")")
	}
	return b.String()
}

func (d *drawing) node(physical, logical string, rows int64, runs int64, inputs ...operator) operator {
	o := operator{NodeID: d.nodes, Physical: physical, Logical: logical, Rows: float64(rows), Mode: "Row",
		Runtime: counters{Rows: rows * runs, Runs: runs, Mode: "Row"}, Inputs: inputs}
	d.nodes++
	return o
}

// over puts an operator that does not change the number of rows over another.
func (d *drawing) over(physical, logical string, in operator) operator {
	return d.node(physical, logical, int64(in.Rows), in.Runtime.Runs, in)
}

// operator describes a plan that is run this many times.
func (d *drawing) operator(p plan, runs int64) operator {
	switch p := p.(type) {
	case *scanPlan:
		return d.scan(p, runs)
	case *rowsPlan:
		return d.node("Constant Scan", "Constant Scan", int64(len(p.rows)), runs)
	case *countedPlan:
		return d.node("Table Scan", "Table Scan", p.rows, runs)
	case *valuesPlan:
		return d.node("Constant Scan", "Constant Scan", int64(len(p.rows)), runs)
	case *projectPlan:
		if productOf(p.input) != nil || onlyColumns(p.exprs) {
			return d.operator(p.input, runs)
		}
		return d.over("Compute Scalar", "Compute Scalar", d.operator(p.input, runs))
	case *crossPlan:
		return d.product(p)
	case *joinPlan:
		logical := map[bool]string{true: "Left Outer Join", false: "Inner Join"}[p.outer]
		if p.byHash() != nil {
			return d.node("Hash Match", logical, 0, runs, d.operator(p.left, runs), d.operator(p.right, runs))
		}
		return d.node("Nested Loops", logical, 0, runs, d.operator(p.left, runs), d.operator(p.right, runs))
	case *limitPlan:
		return d.limit(p, runs)
	case *aggregatePlan:
		return d.aggregation(p, runs)
	}
	return d.other(p, runs)
}

// simpleOperators name the plans that have one input and do what their name says.
func simpleOperator(p plan) (physical, logical string) {
	switch p.(type) {
	case *filterPlan:
		return "Filter", "Filter"
	case *sortPlan:
		return "Sort", "Sort"
	case *distinctPlan:
		return "Sort", "Distinct Sort"
	case *unionPlan:
		return "Concatenation", "Concatenation"
	}
	return "", ""
}

func (d *drawing) other(p plan, runs int64) operator {
	physical, logical := simpleOperator(p)
	var inputs []operator
	for _, in := range inputsOf(p) {
		inputs = append(inputs, d.operator(in, runs))
	}
	if physical == "" && len(inputs) == 1 {
		return inputs[0]
	}
	rows := int64(0)
	for _, in := range inputs {
		rows = max(rows, int64(in.Rows))
	}
	return d.node(physical, logical, rows, runs, inputs...)
}

func onlyColumns(exprs []scalar) bool {
	for _, s := range exprs {
		if s.ref == 0 {
			return false
		}
	}
	return true
}

// scan is how a table is read: one row after the other, or along an index, where a Top may end it early.
func (d *drawing) scan(p *scanPlan, runs int64) operator {
	o := d.node("Table Scan", "Table Scan", int64(p.rows.rows), runs)
	o.Object = &object{Database: "[" + d.run.s.db.name + "]", Table: "[" + strings.ReplaceAll(p.table.fullName(), ".", "].[") + "]"}
	if p.index == nil {
		return o
	}
	o.Physical, o.Rows, o.Runtime.Rows = "Index Scan", float64(p.read), p.read*runs
	if p.index.index.Clustered {
		o.Physical = "Clustered Index Scan"
	}
	o.Logical, o.Object.Index = o.Physical, "["+p.index.index.Name+"]"
	return o
}

// limit is Top, or Top N Sort where the input is sorted for it.
func (d *drawing) limit(p *limitPlan, runs int64) operator {
	rows := d.run.known[p]
	input := p.input
	for {
		switch in := input.(type) {
		case *renamedPlan:
			input = in.plan
			continue
		case *sortPlan:
			return d.node("Sort", "TopN Sort", rows, runs, d.operator(in.input, runs))
		}
		return d.node("Top", "Top", rows, runs, d.operator(input, runs))
	}
}

// product is a cross join: the optimiser normally spools the inner side, a performance spool.
func (d *drawing) product(p *crossPlan) operator {
	left := d.operator(p.left, 1)
	var right operator
	if d.noSpool {
		right = d.operator(p.right, max(p.outerRows, 1))
	} else {
		right = d.node("Table Spool", "Lazy Spool", p.innerRows, max(p.outerRows, 1), d.operator(p.right, 1))
	}
	return d.node("Nested Loops", "Inner Join", p.outerRows*p.innerRows, 1, left, right)
}

func (d *drawing) aggregation(p *aggregatePlan, runs int64) operator {
	in := d.operator(p.input, runs)
	if p.grouped {
		return d.node("Hash Match", "Aggregate", int64(in.Rows), runs, in)
	}
	return d.over("Compute Scalar", "Compute Scalar", d.node("Stream Aggregate", "Aggregate", 1, runs, in))
}

// showPlan sends the plan of a statement as a result of its own.
func (b *batch) showPlan(text string) {
	b.open = true
	b.w.Columns([]tds.Column{{Name: "Microsoft SQL Server 2005 XML Showplan", Type: typeXML, Nullable: true}})
	b.w.Row([]any{text})
	b.done(tds.Done{Count: 1, HasCount: true, Command: tds.CommandSelect})
}
