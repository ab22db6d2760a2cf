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
  /** Whether the context carries it: its feature may have been taken away. */
  isIn(context: WithServices): boolean;
  /** An entry for `Services`. */
  providedBy(service: Service): readonly [symbol, unknown];
}

/**
 * After `const alertsOf = defineService<Alerts>("alerts")`, `alertsOf(context)` is what the feature
 * provides.
 */
export function defineService<Service>(name: string): ServiceKey<Service> {
  const key = Symbol(name);
  const of = ({ services }: WithServices): Service => {
    if (!services.has(key)) throw new Error(`nothing provides ${name} here`);
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- only `providedBy` knows the key
    return services.get(key) as Service;
  };
  return Object.assign(of, {
    isIn: ({ services }: WithServices) => services.has(key),
    providedBy: (service: Service) => [key, service] as const,
  });
}
