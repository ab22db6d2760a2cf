import type { Scope } from "./inventory.ts";
import { type Follower, KnownFleet } from "./known-fleet.ts";

/**
 * Scopes are teams, and what no team has. There are more only when a policy has hundreds of teams
 * whose members are all active.
 */
const maxScopes = 300;

/**
 * Keeps an inventory for each scope, with indexes of its own, so that a hidden VM or project
 * neither answers, nor fills a list of suggestions, nor takes time. Scopes follow what this process
 * knows. The least recently used scope is dropped first.
 */
export function createScopes(known: KnownFleet): (scope: Scope) => Promise<KnownFleet> {
  const scopes = new Map<string, { part: Promise<KnownFleet>; leave: () => void }>();

  function open(scope: Scope): { part: Promise<KnownFleet>; leave: () => void } {
    const part = new KnownFleet();
    const follower: Follower = {
      set(entry) {
        if (scope.sees(entry.contents.project)) part.set(entry);
        else part.remove(entry.contents.project.id);
      },
      remove: (projectId) => part.remove(projectId),
    };
    return {
      part: known.follow(follower).then(() => part),
      leave: () => known.leave(follower),
    };
  }

  return (scope) => {
    const opened = scopes.get(scope.key) ?? open(scope);
    scopes.delete(scope.key);
    scopes.set(scope.key, opened);
    const [oldest] = scopes;
    if (scopes.size > maxScopes && oldest) {
      oldest[1].leave();
      scopes.delete(oldest[0]);
    }
    return opened.part;
  };
}
