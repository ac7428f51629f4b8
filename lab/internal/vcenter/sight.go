package vcenter

import (
	"reflect"
	"slices"
	"strings"

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

// authorization reports an account's actual privileges; the simulator grants all.
// An account's privilege is valid for the whole inventory, a role's where the role was granted.
type authorization struct {
	*simulator.AuthorizationManager

	lab *Server
}

func (s *Server) authorizationManager() *simulator.AuthorizationManager {
	return s.registry.Get(*s.model.ServiceContent.AuthorizationManager).(*simulator.AuthorizationManager)
}

// listPrivileges fills the list of all privileges, which the simulator leaves empty, from the administrator's role.
func (s *Server) listPrivileges() {
	manager := s.authorizationManager()
	for _, role := range manager.RoleList {
		if role.Name != "Admin" {
			continue
		}
		for _, id := range role.Privilege {
			group, name := id, id
			if dot := strings.LastIndex(id, "."); dot > 0 {
				group, name = id[:dot], id[dot+1:]
			}
			manager.PrivilegeList = append(manager.PrivilegeList, types.AuthorizationPrivilege{
				PrivId: id, Name: name, PrivGroupName: group,
			})
		}
	}
}

func (a *authorization) grants(ctx *simulator.Context, user, privilege string, on types.ManagedObjectReference) bool {
	return a.lab.may(user, privilege) || a.permits(ctx, user, privilege, on)
}

// permits reports whether a permission on the object, or one inherited by it, gives the
// user a role with the privilege.
func (a *authorization) permits(ctx *simulator.Context, user, privilege string, on types.ManagedObjectReference) bool {
	if _, ok := ctx.Map.Get(on).(mo.Entity); !ok {
		return false
	}
	request := types.RetrieveEntityPermissions{This: a.Self, Entity: on, Inherited: true}
	answer := a.RetrieveEntityPermissions(ctx, &request).(*methods.RetrieveEntityPermissionsBody)
	for _, permission := range answer.Res.Returnval {
		reaches := permission.Propagate || permission.Entity != nil && *permission.Entity == on
		if permission.Group || permission.Principal != user || !reaches {
			continue
		}
		for _, role := range a.RoleList {
			if role.RoleId == permission.RoleId && slices.Contains(role.Privilege, privilege) {
				return true
			}
		}
	}
	return false
}

func (a *authorization) availability(ctx *simulator.Context, user string, entities []types.ManagedObjectReference, privileges []string) []types.EntityPrivilege {
	var answer []types.EntityPrivilege
	for _, entity := range entities {
		of := types.EntityPrivilege{Entity: entity}
		for _, privilege := range privileges {
			of.PrivAvailability = append(of.PrivAvailability, types.PrivilegeAvailability{
				PrivId: privilege, IsGranted: a.grants(ctx, user, privilege, entity),
			})
		}
		answer = append(answer, of)
	}
	return answer
}

// HasPrivilegeOnEntities answers for the user of a session.
func (a *authorization) HasPrivilegeOnEntities(ctx *simulator.Context, req *types.HasPrivilegeOnEntities) soap.HasFault {
	return &methods.HasPrivilegeOnEntitiesBody{Res: &types.HasPrivilegeOnEntitiesResponse{
		Returnval: a.availability(ctx, a.user(ctx, req.SessionId), req.Entity, req.PrivId),
	}}
}

// HasUserPrivilegeOnEntities answers for a named user.
func (a *authorization) HasUserPrivilegeOnEntities(ctx *simulator.Context, req *types.HasUserPrivilegeOnEntities) soap.HasFault {
	return &methods.HasUserPrivilegeOnEntitiesBody{Res: &types.HasUserPrivilegeOnEntitiesResponse{
		Returnval: a.availability(ctx, req.UserName, req.Entities, req.PrivId),
	}}
}

// user is the owner of the session; a client may only ask about its own or, as administrator, any.
func (a *authorization) user(ctx *simulator.Context, session string) string {
	if user := a.lab.userOf(session); user != "" {
		return user
	}
	return ctx.Session.UserName
}
