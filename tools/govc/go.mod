// govc, VMware's command line, for counting a fleet's findings without vnuma: tools/count_findings.py.
// v0.46 is the last line whose module in the proxy holds it.
module vnuma.dev/govc

go 1.25.0

tool github.com/vmware/govmomi/govc

require (
	github.com/a8m/tree v0.0.0-20210115125333-10a5fd5b637d // indirect
	github.com/dougm/pretty v0.0.0-20171025230240-2ee9d7453c02 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/kr/text v0.2.0 // indirect
	github.com/rogpeppe/go-internal v1.16.0 // indirect
	github.com/vmware/govmomi v0.46.2 // indirect
	github.com/xlab/treeprint v1.2.0 // indirect
	golang.org/x/text v0.19.0 // indirect
)
