package vcenter

import (
	"reflect"
	"slices"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
)

// page is the number of objects per answer of the property collector unless the client sets a limit:
// a vCenter chooses one of its own, and the client has to request the rest.
const page = 100

// substituteReaders gives a session the lab's property collector, and with a restricted account readers that hide the rest of
// the inventory.
func (s *Server) substituteReaders(ctx *simulator.Context, ref types.ManagedObjectReference) {
	account := s.account(ctx.Session.UserName)
	limited := account != nil && len(account.Sees) > 0
	switch reader := s.registry.Get(ref).(type) {
	case *simulator.PropertyCollector:
		own := fetching{reader}
		ctx.WithLock(reader, func() {
			if limited {
				ctx.Session.Registry.Put(&collector{own, s, account.Sees})
			} else {
				ctx.Session.Registry.Put(&own)
			}
		})
	case *simulator.ViewManager:
		if limited {
			ctx.WithLock(reader, func() { ctx.Session.Registry.Put(&viewManager{reader, s, account.Sees}) })
		}
	}
}

// fetching is the property collector; its Fetch answers the read of an unset property with nothing, where the simulator's
// answers with an element of another method.
type fetching struct{ *simulator.PropertyCollector }

// Fetch has the simulator's request, whose type has no name outside of govmomi.
func (f *fetching) Fetch(ctx *simulator.Context, req any) soap.HasFault {
	fetch := reflect.ValueOf(f.PropertyCollector).MethodByName("Fetch")
	answer := fetch.Call([]reflect.Value{reflect.ValueOf(ctx), reflect.ValueOf(req)})[0].Interface().(soap.HasFault)
	if _, unset := answer.(*methods.RetrievePropertiesExBody); unset && answer.Fault() == nil {
		return &nothingFetched{Res: &struct{}{}}
	}
	return answer
}

// nothingFetched is the answer to Fetch without a value.
type nothingFetched struct {
	Res *struct{} `xml:"FetchResponse"`
}

func (*nothingFetched) Fault() *soap.Fault { return nil }

// collector is the property collector of an account that sees only part of the inventory.
type collector struct {
	fetching

	lab  *Server
	sees []string
}

// RetrievePropertiesEx leaves out what the account does not see, as a vCenter does in traversals.
func (c *collector) RetrievePropertiesEx(ctx *simulator.Context, req *types.RetrievePropertiesEx) soap.HasFault {
	answer := c.PropertyCollector.RetrievePropertiesEx(ctx, req)
	if body, ok := answer.(*methods.RetrievePropertiesExBody); ok && body.Res != nil && body.Res.Returnval != nil {
		body.Res.Returnval.Objects = c.seen(body.Res.Returnval.Objects)
	}
	return answer
}

// ContinueRetrievePropertiesEx does the same on later pages.
func (c *collector) ContinueRetrievePropertiesEx(ctx *simulator.Context, req *types.ContinueRetrievePropertiesEx) soap.HasFault {
	answer := c.PropertyCollector.ContinueRetrievePropertiesEx(ctx, req)
	if body, ok := answer.(*methods.ContinueRetrievePropertiesExBody); ok && body.Res != nil {
		body.Res.Returnval.Objects = c.seen(body.Res.Returnval.Objects)
	}
	return answer
}

func (c *collector) seen(objects []types.ObjectContent) []types.ObjectContent {
	return slices.DeleteFunc(objects, func(o types.ObjectContent) bool { return !c.lab.visible(o.Obj, c.sees) })
}

// viewManager creates views of what the account sees.
type viewManager struct {
	*simulator.ViewManager

	lab  *Server
	sees []string
}

// CreateContainerView leaves out what the account does not see.
func (m *viewManager) CreateContainerView(ctx *simulator.Context, req *types.CreateContainerView) soap.HasFault {
	answer := m.ViewManager.CreateContainerView(ctx, req)
	if body, ok := answer.(*methods.CreateContainerViewBody); ok && body.Res != nil {
		if view, ok := ctx.Session.Registry.Get(body.Res.Returnval).(*simulator.ContainerView); ok {
			view.View = slices.DeleteFunc(view.View, func(ref types.ManagedObjectReference) bool { return !m.lab.visible(ref, m.sees) })
		}
	}
	return answer
}

// visible reports whether an object is one of those named, below one, or a folder above one.
func (s *Server) visible(ref types.ManagedObjectReference, sees []string) bool {
	entity, ok := s.registry.Get(ref).(mo.Entity)
	if !ok {
		return true // a manager, a view
	}
	for at := entity; at != nil; at = s.parent(at) {
		if slices.Contains(sees, at.Entity().Name) {
			return true
		}
	}
	return ref.Type == "Folder" || ref.Type == "Datacenter"
}

func (s *Server) parent(of mo.Entity) mo.Entity {
	up := of.Entity().Parent
	switch is := of.(type) {
	case *simulator.VirtualMachine:
		if is.ParentVApp != nil {
			up = is.ParentVApp
		}
	case *simulator.VirtualApp:
		up = is.ParentFolder
	}
	if up == nil {
		return nil
	}
	above, _ := s.registry.Get(*up).(mo.Entity)
	return above
}
