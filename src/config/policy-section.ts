import type * as z from "zod";

/** A command as `approvals` name it. */
export interface Operation {
  /** With a dot: `vm.restore`. */
  name: string;
  /** Whether a request for this command can wait for approval. */
  mayNeedApproval: boolean;
  /** Whether the command's targets are VMs. */
  isOnVm: boolean;
  /** The number of approvals when no rule matches. */
  byDefault: number;
  /** The least number of approvals, which no rule can lower. */
  atLeast: number;
}

export interface Nonsense {
  path: readonly (string | number)[];
  /** Follows the name of the place. */
  message: string;
}

/**
 * A section of gatehouse.yml that belongs to a feature. `config` builds the file's schema from
 * these and its own sections.
 */
export interface PolicySection<Schema extends z.ZodType = z.ZodType> {
  /** The section's key at the top of the file. */
  name: string;
  /** Lines of gatehouse.example.yml, which `npm run derive` puts together. */
  example?: string;
  /** Accepts `undefined`, for a file without the section. */
  schema: Schema;
  /** The schema of the same key in each team, if teams have it. It accepts `undefined`, too. */
  inTeams?: z.ZodType;
  /**
   * Finds rules that could never be enforced although each value is valid by itself. Paths begin at
   * the top of the file.
   */
  nonsenseIn?(
    value: z.output<Schema>,
    operations: readonly Operation[],
    teams: StatedTeams,
  ): readonly Nonsense[];
  /** Every channel to which this section sends messages. */
  channelsIn?(value: z.output<Schema>): readonly string[];
  /** Every person and user group that messages of this section mention. It gives them no right. */
  mentionedIn?(value: z.output<Schema>): readonly string[];
  /** The callers of the API that this section admits. */
  callersIn?(value: z.output<Schema>): readonly ApiCaller[];
  /** How much the section contains, like `2 sources`, for `policy check`. */
  counted?(value: z.output<Schema>): string;
}

/** The teams of a file, with what sections of features have in them (`teamSectionOf`). */
export type StatedTeams = Readonly<Record<string, { channel?: string | undefined }>>;

/** A caller of the API, as gatehouse.yml names it. */
export interface ApiCaller {
  name: string;
  /** The name under which its calls are counted: `sources.prometheus`. */
  caller: string;
  /** The kind of thing that its calls bring: `alert`. */
  brings: string;
  /** The variable that holds its secret, for a caller that authenticates with one. */
  secret?: string;
  /** The channel where what it brings is posted. */
  channel?: string | undefined;
}

/** The names that a policy file can use: commands, and the sections of features. */
export interface PolicyTerms {
  readonly operations: readonly Operation[];
  readonly sections: readonly PolicySection[];
}

export const defineSection = <Schema extends z.ZodType>(
  section: PolicySection<Schema>,
): PolicySection<Schema> => section;

/**
 * The key under which a policy carries the sections of features. A symbol is copied with the
 * policy, and comparing two policies doesn't see it.
 */
const sections: unique symbol = Symbol("sections of features");

/** A policy with the sections of features, which only `sectionOf` reads. */
export interface WithSections {
  readonly [sections]?: readonly PolicySection[];
}

export const withSections = <P extends object>(
  policy: P,
  all: readonly PolicySection[],
): P & WithSections => ({ ...policy, [sections]: all });

/** The content of a feature's section in the file, or its defaults. */
export function sectionOf<Schema extends z.ZodType>(
  policy: object,
  { name, schema }: PolicySection<Schema>,
): z.output<Schema> {
  const value: unknown = Reflect.get(policy, name);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the file was read by this schema
  return value === undefined ? schema.parse(undefined) : (value as z.output<Schema>);
}

/** The content of a feature's section in one team, or its defaults. */
export function teamSectionOf<Schema extends z.ZodType>(
  team: object,
  name: string,
  schema: Schema,
): z.output<Schema> {
  const value: unknown = Reflect.get(team, name);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the file was read by this schema
  return value === undefined ? schema.parse(undefined) : (value as z.output<Schema>);
}

/** Every channel to which the sections of features send messages. */
export const channelsIn = (policy: WithSections): readonly string[] =>
  (policy[sections] ?? []).flatMap(
    (section) => section.channelsIn?.(sectionOf(policy, section)) ?? [],
  );

/** Every person and user group that messages of features' sections mention. */
export const mentionedIn = (policy: WithSections): readonly string[] =>
  (policy[sections] ?? []).flatMap(
    (section) => section.mentionedIn?.(sectionOf(policy, section)) ?? [],
  );

/** The callers of the API that the sections of features admit. */
export const callersIn = (policy: WithSections): readonly ApiCaller[] =>
  (policy[sections] ?? []).flatMap(
    (section) => section.callersIn?.(sectionOf(policy, section)) ?? [],
  );

/** How much the sections of features contain, in the words of `policy check`. */
export const countedSections = (policy: WithSections): readonly string[] =>
  (policy[sections] ?? []).flatMap(
    (section) => section.counted?.(sectionOf(policy, section)) ?? [],
  );
