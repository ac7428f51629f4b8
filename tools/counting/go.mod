// govc, VMware's command line, and a jq, for counting a fleet's findings without vnuma: tools/count_findings.py.
// v0.46 is the last line of govmomi whose module in the proxy holds govc.
module vnuma.dev/counting

go 1.25.0

tool (
	github.com/itchyny/gojq/cmd/gojq
	github.com/vmware/govmomi/govc
)

require (
	github.com/a8m/tree v0.0.0-20210115125333-10a5fd5b637d // indirect
	github.com/dougm/pretty v0.0.0-20171025230240-2ee9d7453c02 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/itchyny/gojq v0.12.17 // indirect
	github.com/itchyny/timefmt-go v0.1.6 // indirect
	github.com/kr/text v0.2.0 // indirect
	github.com/mattn/go-isatty v0.0.20 // indirect
	github.com/mattn/go-runewidth v0.0.15 // indirect
	github.com/rivo/uniseg v0.4.7 // indirect
	github.com/rogpeppe/go-internal v1.16.0 // indirect
	github.com/vmware/govmomi v0.46.2 // indirect
	github.com/xlab/treeprint v1.2.0 // indirect
	golang.org/x/sys v0.26.0 // indirect
	golang.org/x/text v0.19.0 // indirect
	gopkg.in/yaml.v3 v3.0.1 // indirect
)
