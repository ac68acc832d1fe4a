import { isShellfleetError, ShellfleetError } from '@shellfleet/protocol';
import { ApiRefusal } from './api/api-errors.ts';

const OVER_QUOTA = /exceeded quota|status unknown for quota/i;

/**
 * Tells whether the quota of the namespace refuses an object. It is counted anew when another object is gone, and a new
 * one refuses everything until it is counted.
 */
export function isOverQuota(error: unknown): error is ApiRefusal {
  return error instanceof ApiRefusal && error.statusCode === 403 && OVER_QUOTA.test(error.message);
}

/** Tells whether a write met another one, most often of the counts of a quota, and may be repeated. */
export function metAnotherWrite(error: unknown): error is ApiRefusal {
  return error instanceof ApiRefusal && error.statusCode === 409 && error.reason === 'Conflict';
}

/** Tells whether the same call may succeed later: there was no reply, or the server could not serve. */
export function mayPass(error: unknown): boolean {
  return !(error instanceof ApiRefusal) || error.statusCode === 429 || error.statusCode >= 500;
}

/** Converts an error of the API server, for the sentence `The API server refused <doing>: …`. */
export function toClusterError(error: unknown, doing: string): ShellfleetError {
  if (isShellfleetError(error)) return error;
  const said = error instanceof Error ? error.message : String(error);
  if (!(error instanceof ApiRefusal))
    return new ShellfleetError('SANDBOX_UNAVAILABLE', describeUnreachable(said), {}, { cause: error, retryable: true });
  const context = { statusCode: error.statusCode, reason: error.reason };
  return new ShellfleetError(
    'SANDBOX_UNAVAILABLE',
    `The API server of Kubernetes refused ${doing}: ${said}.${adviceOn(error)}`,
    context,
    {
      cause: error,
    },
  );
}

/** Returns the words of a refusal for a quota. */
export const describeQuota = ({ message }: ApiRefusal) => message.slice(Math.max(message.search(OVER_QUOTA), 0));

export const describeUnreachable = (said: string) => `The API server of Kubernetes does not answer (${said}).`;

function adviceOn({ statusCode, message }: ApiRefusal): string {
  if (statusCode === 401) return ' The token in kubernetes.api.tokenFile is not one of this cluster.';
  if (/violates PodSecurity/i.test(message))
    return ' Sessions need a namespace that enforces at most the level `restricted`.';
  if (statusCode === 403 && /cannot \w+ resource/i.test(message))
    return ' Give the service account of the worker the role of the chart (docs/kubernetes.md).';
  if (statusCode === 404) return ' Does the namespace of kubernetes.namespace exist?';
  return '';
}
