import { accessSync, constants, readdirSync } from "node:fs";
import path from "node:path";
import type { Policy } from "../../config/policy-file.ts";
import { codeOf } from "../../errors.ts";
import { wayOut } from "../hold-directory.ts";
import { nearestAbove, problemOfMaking } from "./directory.ts";
import { asSentence, type Finding, ill, note, well } from "./finding.ts";

export interface FolderFacts {
  folder: string;
  user: number;
  /** Whether attestation.refresh fills it. */
  isFilled: boolean;
  isEmpty: boolean;
  /** The code of the error that reading it met. */
  problem: string | undefined;
  /** The same of writing into it, or of making it, where attestation.refresh does. */
  problemOfFilling: string | undefined;
}

/** Whether the folder of what vendors have signed can be used from here. `beside`: the folder of the policy file. */
export function lookAtFolder(
  { endorsements, refresh }: Policy["attestation"],
  beside = "",
): readonly Finding[] {
  if (endorsements === undefined) return [];
  const folder = path.resolve(beside, endorsements);
  const isFilled = refresh !== undefined;
  const { problem, isEmpty } = read(folder);
  const problemOfFilling = isFilled ? problemIn(folder, problem) : undefined;
  const user = process.getuid?.() ?? 0;
  return judgeFolder({ folder, user, isFilled, isEmpty, problem, problemOfFilling });
}

function read(folder: string): Pick<FolderFacts, "problem" | "isEmpty"> {
  try {
    return { problem: undefined, isEmpty: readdirSync(folder).length === 0 };
  } catch (error) {
    return { problem: codeOf(error), isEmpty: false };
  }
}

function problemIn(folder: string, problem: string | undefined): string | undefined {
  if (problem === "ENOENT") return problemOfMaking(nearestAbove(folder));
  try {
    accessSync(folder, constants.W_OK | constants.X_OK);
    return undefined;
  } catch (error) {
    return codeOf(error);
  }
}

const place = "attestation.endorsements";
const about = place.split(".");
const fill =
  "fill it (node gatehouse.mjs attestation import), or let attestation.refresh fill it; docs/attestation.md names the files";

export function judgeFolder(facts: FolderFacts): readonly Finding[] {
  const { folder, user, isFilled, isEmpty, problem, problemOfFilling } = facts;
  const isAway = problem === "ENOENT";
  const nothing = "no VM can be verified";
  if (problem !== undefined && !isAway) {
    const mend =
      problem === "EACCES" ? `let user ${user} read it, and what is in it` : wayOut(problem, user);
    return [
      ill(`${place}: ${folder} can't be read (${problem}): ${nothing}`, asSentence(mend), about),
    ];
  }
  if (!isFilled) {
    if (isAway)
      return [
        ill(
          `${place}: ${folder} isn't there: ${nothing}`,
          asSentence(`make it and ${fill}`),
          about,
        ),
      ];
    if (isEmpty) return [note(`${place}: ${folder} is empty: ${nothing}`, asSentence(fill), about)];
  }
  if (problemOfFilling !== undefined) {
    const mend = asSentence(wayOut(problemOfFilling, user));
    return isAway
      ? [
          ill(
            `${place}: ${folder} isn't there, and attestation.refresh can't make it (${problemOfFilling})`,
            mend,
            about,
          ),
        ]
      : [
          note(
            `${place}: attestation.refresh can't fill ${folder} from here (${problemOfFilling})`,
            mend,
            about,
          ),
        ];
  }
  if (isAway)
    return [
      note(
        `${place}: ${folder} isn't there yet`,
        "attestation.refresh makes it when the first evidence comes.",
        about,
      ),
    ];
  return [well(`${place}: ${folder} can be read`)];
}
