/** A role that only commands have which answer at once. At most one command has each. */
type SingleReadRole =
  /** Runs for `--help`, and for a slash command without words. Its argument is the topic. */
  | "help"
  /** Shows a VM as it is. A text that names a VM and is no command opens it. */
  | "shows-vm"
  /** Tells of one request. Whoever may run it may press a request's button that shows its card. */
  | "shows-request"
  /** Shows what a VM's evidence says. Messages name it where evidence couldn't be read. */
  | "shows-evidence"
  /** Lists a VM's snapshots. Messages that ask for another snapshot name it. */
  | "lists-snapshots"
  /** Allows changes again. Messages about a freeze name it. */
  | "ends-freeze";

/** A role that several commands may have. */
type SharedRole =
  /** Listed among the first commands in help. */
  "everyday";

export type ReadRole = SingleReadRole | SharedRole;

export type ChangeRole =
  | SharedRole
  /** Offered next to a VM with a problem, where its card offers it too. */
  | "helps-in-trouble";

/**
 * What other code looks a command up by, since nothing is decided by a command's name. Rules about
 * a command, its data, and its words are members of its definition.
 */
export type CommandRole = ReadRole | ChangeRole;

interface WithRoles {
  roles?: readonly CommandRole[];
}

/** The first of these commands that has the role. */
export const commandWithRole = <C extends WithRoles>(
  commands: readonly C[],
  role: CommandRole,
): C | undefined => commands.find(({ roles }) => roles?.includes(role));

/** All of these commands that have the role, in their order. */
export const commandsWithRole = <C extends WithRoles>(
  commands: readonly C[],
  role: CommandRole,
): readonly C[] => commands.filter(({ roles }) => roles?.includes(role));
