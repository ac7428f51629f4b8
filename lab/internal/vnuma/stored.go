package vnuma

import "strconv"

// Names of the keys that ESXi stores at the first power-on, as they are in a VM's extraConfig.
const (
	AutosizeCookie = "numa.autosize.cookie"
	AutosizeMax    = "numa.autosize.vcpu.maxPerVirtualNode"
)

// cookieUnit separates the vCPU count in a cookie: published ones read vCPUs x 10000 + 1 in the
// older format and vCPUs x 10000 + cores per socket x 10 + 2 in the newer. An inference.
const cookieUnit = 10000

// Store returns the keys that this power-on adds to the VM's extraConfig: none before 6.5, and
// none when ESXi did not size the nodes itself.
func Store(release Release, vm VM, layout Layout) map[string]string {
	if !release.AtLeast(6, 5) || !layout.Autosized {
		return nil
	}
	cookie := vm.VCPUs*cookieUnit + 1
	if release.AtLeast(7, 0) {
		cookie = vm.VCPUs*cookieUnit + layout.CoresPerSocket*10 + 2
	}
	return map[string]string{
		AutosizeCookie: strconv.Itoa(cookie),
		AutosizeMax:    strconv.Itoa(layout.Sizes[0]),
	}
}
