# Copyright: vnuma contributors
# Apache License 2.0 (see LICENSE)
"""Options that the actions of the collection share."""


class ModuleDocFragment:
    """The VM and its run."""

    DOCUMENTATION = r"""
options:
  target:
    description:
      - The VM and how it is reached, usually built from inventory variables. Without O(target.vcenter)
        nothing shapes it; a workload may use its shell instead of O(target.sql).
      - >-
        A password is a reference, C({env: NAME}), C({file: PATH}), C({vault: FILE, key: NAME}) or
        C({command: [PROGRAM, ARGUMENT]}); or the result of a lookup, or a vault value. Plain text is
        refused. It is looked up where it is used and appears in no output.
    type: dict
    required: true
    suboptions:
      name:
        description: Inventory name of the VM.
        type: str
        required: true
      vm:
        description: Name of the VM in vCenter, or its inventory path such as C(/DC1/vm/Test/sql16).
        type: str
        default: ''
      vcenter:
        description: The vCenter, or one ESXi host.
        type: dict
        suboptions:
          host:
            description: Name or address.
            type: str
            required: true
          port:
            description: Port of the vSphere API.
            type: int
            default: 443
          user:
            description: Account, with O(target.vcenter.password).
            type: str
            default: ""
          password:
            description: Reference to the account's password, or the result of a lookup.
            type: raw
          token:
            description: Reference to a SAML bearer token, instead of user and password.
            type: raw
          session:
            description: Reference to the cookie of an open session, instead of user and password or token.
            type: raw
          proxy:
            description: Proxy that connects by HTTP CONNECT, as C(HOST:PORT).
            type: str
          ca_file:
            description: CA certificate to trust instead of the system's.
            type: str
          verify_tls:
            description: Whether the server's certificate is verified.
            type: bool
            default: true
      sql:
        description: SQL Server in the guest.
        type: dict
        suboptions:
          host:
            description: Name or address.
            type: str
            required: true
          port:
            description: Port. Not with O(target.sql.instance).
            type: int
            default: 1433
          instance:
            description: Named instance. SQL Server Browser (UDP 1434) is asked for its port at each login.
            type: str
            default: ''
          user:
            description: Login. Needed without O(target.sql.kerberos).
            type: str
            default: ''
          password:
            description: >-
              Reference to the login's password, or the result of a lookup. Needed without
              O(target.sql.kerberos).
            type: raw
          kerberos:
            description: >-
              Whether to log in by Kerberos, with the ticket of the user who runs Ansible.
            type: bool
            default: false
          encrypt:
            description:
              - Encryption of the session, in the words of Microsoft's driver.
              - C(no) encrypts the login at most; whoever is on the way gets it by denying encryption.
            type: str
            choices: [mandatory, strict, 'no']
            default: mandatory
          trust_server_certificate:
            description: Whether any server certificate is accepted.
            type: bool
            default: false
          ca_file:
            description: PEM file with the CA of the server's certificate. Without it the system's CAs count.
            type: str
          node_ports:
            description: Further ports for SQL Server to open, one for each memory node that a workload uses.
            type: list
            elements: int
            default: []
          identity:
            description:
              - What tells that this SQL Server runs in the VM, besides its power-cycle.
              - C(guest_address), an address that VMware Tools report; C(power_cycle), no address.
              - Or a dict with C(address), the one that SQL Server has itself.
            type: raw
            default: guest_address
          driver:
            description: ODBC driver. C(auto), a name from odbcinst.ini, or a library's path.
            type: str
            default: auto
      test_clone:
        description: Whether the VM is a test clone, which may be power-cycled many times.
        type: bool
        default: false
      require_tag:
        description: The vSphere tag without which the VM is not changed, as C(CATEGORY:NAME). Empty for none.
        type: str
      site:
        description: The site whose process works on the VM, where the inventory names one.
        type: str
"""

    RUN = r"""
options:
  run:
    description: Name of the run, as C(quick.4); C(latest) is the newest.
    type: str
    required: true
"""

    PERMIT = r"""
options:
  production:
    description:
      - Whether a VM that is no test clone may be changed outside a run; it then needs O(ticket).
      - In a run its own permission counts.
    type: bool
    default: false
  ticket:
    description: Change ticket under which a VM is changed outside a run; it stands in the audit log.
    type: str
    default: ''
"""

    ATTEMPT = r"""
options:
  run:
    description: Name of the run, as C(quick.4). Empty outside a run.
    type: str
    default: ''
  attempt:
    description:
      - The attempt that M(vnuma.vnuma.cell_claim) opened. Empty outside a run.
      - With it the study's own settings count, not the task's. Check mode tells what the step changes.
    type: dict
    default: {}
"""
