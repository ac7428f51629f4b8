package vcenter

import (
	"slices"
	"strings"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
)

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
