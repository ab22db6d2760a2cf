/**
 * The services of features that a context carries for their commands, without knowing their types.
 */
export type Services = ReadonlyMap<symbol, unknown>;

export interface WithServices {
  services: Services;
}

/** A typed key for a service of a feature. */
export interface ServiceKey<Service> {
  /** The service that this context carries. Throws when nothing provides it. */
  (context: WithServices): Service;
  /** The service, or undefined when nothing provides it. */
  ifAny(context: WithServices): Service | undefined;
  /** An entry for `Services`. */
  providedBy(service: Service): readonly [symbol, unknown];
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
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- it is there
    return ifAny(context) as Service;
  };
  return Object.assign(of, {
    ifAny,
    providedBy: (service: Service) => [key, service] as const,
  });
}
