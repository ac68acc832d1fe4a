import type { FastifyReply, FastifyRequest } from 'fastify';
import { Gauge, Histogram, Registry } from 'prom-client';

const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5, 30, 300];

/** What the metrics read when they are asked for. */
interface Observed {
  /** Waits and streams that are open. */
  openWork(): number;
  /** Callers whose connection to the fleet is kept. */
  fleets(): number;
}

/** The metrics of one server. Their labels have no ids. */
export class ApiMetrics {
  readonly #registry = new Registry();
  readonly #durations: Histogram<'method' | 'route' | 'status'>;

  constructor(observed: Observed) {
    const registers = [this.#registry];
    this.#durations = new Histogram({
      name: 'shellfleet_api_request_duration_seconds',
      help: 'Time from the headers of a request to the end of its reply, of streams to their end',
      labelNames: ['method', 'route', 'status'],
      buckets: SECONDS,
      registers,
    });
    gauge('shellfleet_api_open_work', 'Waits and streams that are open', observed.openWork, registers);
    gauge('shellfleet_api_callers', 'Callers whose connection to the fleet is kept', observed.fleets, registers);
  }

  get contentType(): string {
    return this.#registry.contentType;
  }

  /** Returns all metrics in the text format of Prometheus. */
  text(): Promise<string> {
    return this.#registry.metrics();
  }

  /** Measures a request until its reply has ended or its client has left. */
  measure(request: FastifyRequest, reply: FastifyReply): void {
    const end = this.#durations.startTimer();
    reply.raw.once('close', () => {
      const { method, url = 'unknown' } = { method: request.method, url: request.routeOptions.url };
      end({ method, route: url, status: String(reply.raw.statusCode) });
    });
  }
}

function gauge(name: string, help: string, read: () => number, registers: Registry[]): void {
  new Gauge({
    name,
    help,
    registers,
    collect() {
      this.set(read());
    },
  });
}
