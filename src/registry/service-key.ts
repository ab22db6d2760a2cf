/** Services of features by their keys. A context carries them without knowing their types. */
export type Services = ReadonlyMap<symbol, unknown>;

export interface WithServices {
  services: Services;
}

/** An entry for `Services`. */
export type Provided = readonly [key: symbol, service: unknown];

/** A typed key for a service of a feature. Whoever asks for the service owns the key. */
export interface ServiceKey<Service> {
  /** The service that this context carries. Throws when nothing provides it. */
  (context: WithServices): Service;
  /** The service, or undefined when nothing provides it. */
  ifAny(context: WithServices): Service | undefined;
  providedBy(service: Service): Provided;
}

/**
 * After `const alertsOf = defineService<Alerts>("alerts")`, `alertsOf(context)` is what the feature
 * provides.
 */
export function defineService<Service>(name: string): ServiceKey<Service> {
  const key = Symbol(name);
  const ifAny = ({ services }: WithServices): Service | undefined =>
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- only `providedBy` knows the key
    services.get(key) as Service | undefined;
  const of = (context: WithServices): Service => {
    if (!context.services.has(key)) throw new Error(`nothing provides ${name} here`);
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- `has` found it, and a service itself may be undefined
    return ifAny(context) as Service;
  };
  return Object.assign(of, {
    ifAny,
    providedBy: (service: Service) => [key, service] as const,
  });
}

/** Parts that several features provide under one key, in the order of features. */
class Parts {
  readonly all: readonly unknown[];

  constructor(all: readonly unknown[]) {
    this.all = all;
  }
}

/** A typed key for parts of something, of which any number of features provide one. */
export interface PartsKey<Part> {
  /** The parts that this context carries, in the order of features. */
  (context: WithServices): readonly Part[];
  providedBy(part: Part): Provided;
}

/**
 * After `const linesOf = defineParts<Line>("lines")`, `linesOf(context)` are the lines of all
 * features.
 */
export function defineParts<Part>(name: string): PartsKey<Part> {
  const key = Symbol(name);
  const partsIn = ({ services }: WithServices): readonly Part[] => {
    const parts = services.get(key);
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- only `providedBy` knows the key
    return parts instanceof Parts ? (parts.all as readonly Part[]) : [];
  };
  return Object.assign(partsIn, { providedBy: (part: Part) => [key, new Parts([part])] as const });
}

/** Adds what features provide. Throws when two of them provide the same service. */
export function addServices(services: Map<symbol, unknown>, provided: readonly Provided[]): void {
  for (const [key, service] of provided) {
    const before = services.get(key);
    if (before instanceof Parts && service instanceof Parts)
      services.set(key, new Parts([...before.all, ...service.all]));
    else if (services.has(key)) throw new Error(`two features provide ${key.description}`);
    else services.set(key, service);
  }
}
