import type { Scope } from "./inventory.ts";
import { createKnown, type Known } from "./known.ts";

/** Teams, and what no team has: more only where a policy has hundreds of teams whose people are all awake. */
const maxScopes = 300;

/**
 * What each scope knows: indexes of its own, so that what is hidden neither answers, nor fills a list of suggestions, nor
 * takes time. They follow what this process knows; the least used goes first.
 */
export function createScopes(known: Known): (scope: Scope) => Known {
  const scopes = new Map<string, { known: Known; leave(): void }>();

  return (scope) => {
    const before = scopes.get(scope.key);
    const one = before ?? open(scope);
    scopes.delete(scope.key);
    scopes.set(scope.key, one);
    const [oldest] = scopes.keys();
    if (scopes.size > maxScopes && oldest !== undefined) {
      scopes.get(oldest)?.leave();
      scopes.delete(oldest);
    }
    return one.known;
  };

  function open(scope: Scope): { known: Known; leave(): void } {
    const part = createKnown();
    const leave = known.follow({
      set(entry) {
        if (scope.sees(entry.contents.project)) part.set(entry);
        else part.remove(entry.contents.project.id);
      },
      remove: part.remove,
    });
    part.tidy();
    return { known: part, leave };
  }
}
