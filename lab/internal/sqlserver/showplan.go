package sqlserver

import (
	"encoding/xml"
	"fmt"
	"hash/fnv"
	"strings"

	"vnuma.dev/lab/internal/tds"
	"vnuma.dev/lab/internal/tsql"
)

// The showplan of SET STATISTICS XML: the lab's plan in the server's terms, without costs and numbers of rows. Hashes are
// derived from the shape of the plan.

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
	Physical string     `xml:"PhysicalOp,attr"`
	Logical  string     `xml:"LogicalOp,attr"`
	Mode     string     `xml:"EstimatedExecutionMode,attr"`
	Object   *object    `xml:"Object,omitempty"`
	Inputs   []operator `xml:"RelOp"`
}

type object struct {
	Table string `xml:"Table,attr"`
	Index string `xml:"Index,attr,omitempty"`
}

func relOp(physical, logical string, inputs ...operator) operator {
	return operator{Physical: physical, Logical: logical, Mode: "Row", Inputs: inputs}
}

// showplanXML describes the plan of a query that has just run.
func showplanXML(st *tsql.SelectStatement, p plan, r *run) string {
	kind := "SELECT"
	if intoTarget(st.Query) != nil {
		kind = "SELECT INTO"
	}
	root := rootOf(st, p, r)
	query, hash := hashesOf(root)
	text, err := xml.Marshal(showplan{Version: "1.539", Build: r.inst.version.text, Statement: statement{Text: kind, ID: 1, Type: kind,
		QueryHash: "0x" + query, PlanHash: "0x" + hash, Plan: queryPlan{DOP: degreeOf(st, p, r), Root: root}}})
	if err != nil { // every field has a form in XML
		panic(err)
	}
	return string(text)
}

const parallelism = "Parallelism"

// rootOf converts the whole plan.
func rootOf(st *tsql.SelectStatement, p plan, r *run) operator {
	root := drawn(p, !st.Query.Hints.NoPerformanceSpool)
	if intoTarget(st.Query) != nil {
		root = relOp("Table Insert", "Insert", root)
	}
	if degreeOf(st, p, r) > 1 {
		root = relOp(parallelism, "Gather Streams", root)
	}
	return root
}

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
		b.WriteString(o.Object.Table)
	}
	for _, in := range o.Inputs {
		b.WriteString("(" + shapeOf(in) + ")")
	}
	return b.String()
}

// drawn converts a plan to operators. The optimiser normally spools the inner side of a cross join, a performance spool.
func drawn(p plan, spooled bool) operator {
	var inputs []operator
	for _, in := range p.inputs() {
		inputs = append(inputs, drawn(in, spooled))
	}
	switch p := p.(type) {
	case *scanPlan:
		return p.drawn()
	case *rowsPlan, *valuesPlan:
		return relOp("Constant Scan", "Constant Scan")
	case *projectPlan:
		if productOf(p.input) == nil && !onlyColumns(p.exprs) {
			return relOp("Compute Scalar", "Compute Scalar", inputs...)
		}
	case *crossPlan:
		if spooled {
			inputs[1] = relOp("Table Spool", "Lazy Spool", inputs[1])
		}
		return relOp("Nested Loops", "Inner Join", inputs...)
	case *joinPlan:
		physical := map[bool]string{true: "Hash Match", false: "Nested Loops"}[p.byHash()]
		return relOp(physical, map[bool]string{true: "Left Outer Join", false: "Inner Join"}[p.outer], inputs...)
	case *limitPlan:
		if inputs[0].Logical == "Sort" {
			return relOp("Sort", "TopN Sort", inputs[0].Inputs...)
		}
		return relOp("Top", "Top", inputs...)
	case *aggregatePlan:
		if p.grouped {
			return relOp("Hash Match", "Aggregate", inputs...)
		}
		return relOp("Compute Scalar", "Compute Scalar", relOp("Stream Aggregate", "Aggregate", inputs...))
	case *filterPlan:
		return relOp("Filter", "Filter", inputs...)
	case *sortPlan:
		return relOp("Sort", "Sort", inputs...)
	case *distinctPlan:
		return relOp("Sort", "Distinct Sort", inputs...)
	case *unionPlan:
		return relOp("Concatenation", "Concatenation", inputs...)
	}
	if len(inputs) == 0 {
		return relOp("Table Scan", "Table Scan") // rows that are stored as a number
	}
	return inputs[0]
}

func onlyColumns(exprs []scalar) bool {
	for _, s := range exprs {
		if s.ref == 0 {
			return false
		}
	}
	return true
}

// drawn is how a table is read: one row after the other, or along an index.
func (p *scanPlan) drawn() operator {
	kind, at := "Table Scan", &object{Table: "[" + strings.ReplaceAll(p.table.fullName(), ".", "].[") + "]"}
	if p.index != nil {
		kind, at.Index = "Index Scan", "["+p.index.index.Name+"]"
		if p.index.index.Clustered {
			kind = "Clustered Index Scan"
		}
	}
	o := relOp(kind, kind)
	o.Object = at
	return o
}

// showPlan sends the plan of a statement as a result of its own.
func (b *batch) showPlan(text string) {
	b.open = true
	b.w.Columns([]tds.Column{{Name: "Microsoft SQL Server 2005 XML Showplan", Type: typeXML, Nullable: true}})
	b.w.Row([]any{text})
	b.done(tds.Done{Count: 1, HasCount: true, Command: tds.CommandSelect})
}
