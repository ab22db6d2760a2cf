import type * as z from "zod";

/** A command as `approvals` name it. */
export interface Operation {
  /** With a dot: `vm.restore`. */
  name: string;
  /** Whether a request of it can wait for approval. */
  mayNeedApproval: boolean;
  /** Whether it is about VMs. */
  isOnVm: boolean;
  /** Approvals where no rule matches. */
  byDefault: number;
  /** Approvals that no rule can do without. */
  atLeast: number;
}

export interface Nonsense {
  path: readonly (string | number)[];
  /** Follows the name of the place. */
  message: string;
}

/** A section of gatehouse.yml that belongs to a feature: `config` composes the file's schema of these and its own. */
export interface PolicySection<Schema extends z.ZodType = z.ZodType> {
  /** Its key, at the top of the file. */
  name: string;
  /** Takes `undefined`, where the file doesn't have it. */
  schema: Schema;
  /** The same key in each team, where teams have it. Takes `undefined`, too. */
  inTeams?: z.ZodType;
  /** What no rule could enforce although each value is fine by itself. Paths begin at the top of the file. */
  nonsenseIn?(
    value: z.output<Schema>,
    operations: readonly Operation[],
    teams: StatedTeams,
  ): readonly Nonsense[];
  /** Every channel that it sends something to. */
  channelsIn?(value: z.output<Schema>): readonly string[];
  /** Those who call the API. */
  callersIn?(value: z.output<Schema>): readonly ApiCaller[];
  /** How much it holds, like `2 sources`, for `policy check`. */
  counted?(value: z.output<Schema>): string;
}

/** The teams of a file, with what sections of features have in them (`teamSectionOf`). */
export type StatedTeams = Readonly<Record<string, { channel?: string | undefined }>>;

/** Who calls the API, as gatehouse.yml names them. */
export interface ApiCaller {
  name: string;
  /** As calls are counted: `sources.prometheus`. */
  caller: string;
  /** What a call of theirs brings: `alert`. */
  brings: string;
  /** The variable that holds their secret, where they prove themselves by one. */
  secret?: string;
  /** Where what they bring is posted. */
  channel?: string | undefined;
}

/** The terms of a policy file: commands, and the sections of features. */
export interface PolicyTerms {
  readonly operations: readonly Operation[];
  readonly sections: readonly PolicySection[];
}

export const defineSection = <Schema extends z.ZodType>(
  section: PolicySection<Schema>,
): PolicySection<Schema> => section;

/** The sections beside those of `config`: a symbol stays with copies of a policy, and is no difference between two. */
const sections: unique symbol = Symbol("sections of features");

/** A policy as it is handed around: with the sections of features, which only `sectionOf` reads. */
export interface WithSections {
  readonly [sections]?: readonly PolicySection[];
}

export const withSections = <P extends object>(
  policy: P,
  all: readonly PolicySection[],
): P & WithSections => ({ ...policy, [sections]: all });

/** What the file says in the section of a feature, or its defaults. */
export function sectionOf<Schema extends z.ZodType>(
  policy: object,
  { name, schema }: PolicySection<Schema>,
): z.output<Schema> {
  const value: unknown = Reflect.get(policy, name);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the file was read by this schema
  return value === undefined ? schema.parse(undefined) : (value as z.output<Schema>);
}

/** The same of what a team has of it. */
export function teamSectionOf<Schema extends z.ZodType>(
  team: object,
  name: string,
  schema: Schema,
): z.output<Schema> {
  const value: unknown = Reflect.get(team, name);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the file was read by this schema
  return value === undefined ? schema.parse(undefined) : (value as z.output<Schema>);
}

/** Every channel that the sections of features send something to. */
export const channelsIn = (policy: WithSections): readonly string[] =>
  (policy[sections] ?? []).flatMap(
    (section) => section.channelsIn?.(sectionOf(policy, section)) ?? [],
  );

/** Those who call the API, as the sections of features name them. */
export const callersIn = (policy: WithSections): readonly ApiCaller[] =>
  (policy[sections] ?? []).flatMap(
    (section) => section.callersIn?.(sectionOf(policy, section)) ?? [],
  );

/** How much the sections of features hold, in the words of `policy check`. */
export const countedSections = (policy: WithSections): readonly string[] =>
  (policy[sections] ?? []).flatMap(
    (section) => section.counted?.(sectionOf(policy, section)) ?? [],
  );
