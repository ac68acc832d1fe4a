import type { Container, PodSpec } from './pod-schema.ts';
import { amountOf, parseQuantity } from './quantity.ts';
import { type FieldCause, field } from './status.ts';
import type { Metadata } from './store.ts';

const label = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;
const subdomain = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
const qualifiedName = /^([a-z0-9]([-a-z0-9.]*[a-z0-9])?\/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/;
const labelValue = /^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$/;
const environmentName = /^[ -<>-~]+$/;

const SUBDOMAIN =
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and " +
  "end with an alphanumeric character (e.g. 'example.com', regex used for validation is " +
  "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL =
  "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with " +
  "an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is " +
  "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const LABEL_VALUE =
  "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and " +
  "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is " +
  "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const QUALIFIED =
  "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric " +
  "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is " +
  "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const QUANTITY = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

/** Lists what validation refuses in the metadata of an object. */
export function validateMetadata({ name, labels = {}, annotations = {} }: Partial<Metadata>): FieldCause[] {
  const at = (path: string) => `metadata.${path}`;
  const causes: FieldCause[] = [];
  if (name === undefined || name === '') causes.push(field.required(at('name'), 'name or generateName is required'));
  else if (!subdomain.test(name)) causes.push(field.invalid(at('name'), name, SUBDOMAIN));
  else if (name.length > 253) causes.push(field.invalid(at('name'), name, 'must be no more than 253 bytes'));
  for (const [key, value] of Object.entries(labels)) {
    if (!qualifiedName.test(key)) causes.push(field.invalid(at('labels'), key, QUALIFIED));
    if (value.length > 63) causes.push(field.invalid(at('labels'), value, 'must be no more than 63 bytes'));
    else if (!labelValue.test(value)) causes.push(field.invalid(at('labels'), value, LABEL_VALUE));
  }
  for (const key of Object.keys(annotations))
    if (!qualifiedName.test(key)) causes.push(field.invalid(at('annotations'), key, QUALIFIED));
  return causes;
}

/** Lists what validation refuses in the spec of a new claim. */
export function validateClaim({ accessModes = [], resources = {} }: ClaimSpec): FieldCause[] {
  return [
    ...(accessModes.length === 0 ? [field.required('spec.accessModes', 'at least 1 access mode is required')] : []),
    ...(resources.requests?.storage === undefined ? [field.required('spec.resources[storage]')] : []),
  ];
}

interface ClaimSpec {
  accessModes?: string[] | undefined;
  resources?: { requests?: Record<string, string> | undefined } | undefined;
}

/** Lists what validation refuses in the spec of a new Pod. */
export function validatePodSpec(spec: PodSpec): FieldCause[] {
  return [...validateVolumes(spec), ...validateContainers(spec), ...validateRest(spec)];
}

function validateVolumes({ volumes = [] }: PodSpec): FieldCause[] {
  const seen = new Set<string>();
  return volumes.flatMap((volume, index) => {
    const path = `spec.volumes[${index}]`;
    const causes: FieldCause[] = [];
    const sources = Object.keys(volume).filter((key) => key !== 'name');
    if (volume.name === '') causes.push(field.required(`${path}.name`));
    else if (!label.test(volume.name) || volume.name.length > 63)
      causes.push(field.invalid(`${path}.name`, volume.name, LABEL));
    if (seen.has(volume.name)) causes.push(field.duplicate(`${path}.name`, volume.name));
    seen.add(volume.name);
    if (sources.length === 0) causes.push(field.required(path, 'must specify a volume type'));
    for (const source of sources.slice(1))
      causes.push(field.forbidden(`${path}.${source}`, 'may not specify more than 1 volume type'));
    const limit = volume.emptyDir?.sizeLimit;
    if (limit !== undefined && (parseQuantity(limit)?.value ?? -1) < 0)
      causes.push(field.forbidden(`${path}.emptyDir.sizeLimit`, 'SizeLimit field must be a valid resource quantity'));
    if (volume.persistentVolumeClaim?.claimName === '')
      causes.push(field.required(`${path}.persistentVolumeClaim.claimName`));
    return causes;
  });
}

function validateContainers(spec: PodSpec): FieldCause[] {
  const causes: FieldCause[] = [];
  if (spec.containers.length === 0) causes.push(field.required('spec.containers'));
  const names = new Set<string>();
  const lists = { containers: spec.containers, initContainers: spec.initContainers ?? [] };
  for (const [list, containers] of Object.entries(lists))
    containers.forEach((container, index) => {
      const path = `spec.${list}[${index}]`;
      causes.push(...validateContainer(container, path, spec));
      if (names.has(container.name)) causes.push(field.duplicate(`${path}.name`, container.name));
      names.add(container.name);
    });
  return causes;
}

function validateContainer(container: Container, path: string, spec: PodSpec): FieldCause[] {
  const { name, image = '', env = [], imagePullPolicy, terminationMessagePolicy } = container;
  const causes: FieldCause[] = [];
  if (name === '') causes.push(field.required(`${path}.name`));
  else if (!label.test(name) || name.length > 63) causes.push(field.invalid(`${path}.name`, name, LABEL));
  if (image === '') causes.push(field.required(`${path}.image`));
  else if (image.trim() !== image)
    causes.push(field.invalid(`${path}.image`, image, 'must not have leading or trailing whitespace'));
  if (!['Always', 'IfNotPresent', 'Never'].includes(imagePullPolicy))
    causes.push(field.unsupported(`${path}.imagePullPolicy`, imagePullPolicy, ['Always', 'IfNotPresent', 'Never']));
  if (!['File', 'FallbackToLogsOnError'].includes(terminationMessagePolicy))
    causes.push(
      field.unsupported(`${path}.terminationMessagePolicy`, terminationMessagePolicy, [
        'FallbackToLogsOnError',
        'File',
      ]),
    );
  env.forEach((variable, index) => {
    if (variable.name === '') causes.push(field.required(`${path}.env[${index}].name`));
    else if (!environmentName.test(variable.name))
      causes.push(
        field.invalid(
          `${path}.env[${index}].name`,
          variable.name,
          "a valid environment variable name must consist only of printable ASCII characters other than '='",
        ),
      );
  });
  causes.push(...validatePorts(container, path), ...validateMounts(container, path, spec));
  causes.push(...validateResources(container, path));
  const { privileged, allowPrivilegeEscalation, capabilities } = container.securityContext ?? {};
  const escalation = `${path}.securityContext`;
  if (allowPrivilegeEscalation === false && privileged === true)
    causes.push(
      field.invalid(
        escalation,
        container.securityContext,
        'cannot set `allowPrivilegeEscalation` to false and `privileged` to true',
      ),
    );
  if (allowPrivilegeEscalation === false && capabilities?.add?.includes('SYS_ADMIN'))
    causes.push(
      field.invalid(
        escalation,
        container.securityContext,
        'cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN',
      ),
    );
  return causes;
}

function validatePorts({ ports = [] }: Container, path: string): FieldCause[] {
  return ports.flatMap(({ name, containerPort, protocol }, index) => {
    const at = `${path}.ports[${index}]`;
    const causes: FieldCause[] = [];
    if (containerPort < 1 || containerPort > 65_535)
      causes.push(field.invalid(`${at}.containerPort`, containerPort, 'must be between 1 and 65535, inclusive'));
    if (name !== undefined && name.length > 15)
      causes.push(field.invalid(`${at}.name`, name, 'must be no more than 15 characters'));
    if (!['TCP', 'UDP', 'SCTP'].includes(protocol))
      causes.push(field.unsupported(`${at}.protocol`, protocol, ['SCTP', 'TCP', 'UDP']));
    return causes;
  });
}

function validateMounts({ volumeMounts = [] }: Container, path: string, spec: PodSpec): FieldCause[] {
  const volumes = new Set(spec.volumes?.map(({ name }) => name));
  const paths = new Set<string>();
  return volumeMounts.flatMap(({ name, mountPath, subPath = '' }, index) => {
    const at = `${path}.volumeMounts[${index}]`;
    const causes: FieldCause[] = [];
    if (name === '') causes.push(field.required(`${at}.name`));
    else if (!volumes.has(name)) causes.push(field.notFound(`${at}.name`, name));
    if (mountPath === '') causes.push(field.required(`${at}.mountPath`));
    if (mountPath.includes(':')) causes.push(field.invalid(`${at}.mountPath`, mountPath, "must not contain ':'"));
    if (paths.has(mountPath)) causes.push(field.invalid(`${at}.mountPath`, mountPath, 'must be unique'));
    paths.add(mountPath);
    if (subPath.startsWith('/')) causes.push(field.invalid(`${at}.subPath`, subPath, 'must be a relative path'));
    if (subPath.split('/').includes('..'))
      causes.push(field.invalid(`${at}.subPath`, subPath, "must not contain '..'"));
    return causes;
  });
}

const STANDARD = new Set(['cpu', 'memory', 'ephemeral-storage']);

function validateResources({ resources: { limits = {}, requests = {} } }: Container, path: string): FieldCause[] {
  const causes: FieldCause[] = [];
  for (const [list, quantities] of Object.entries({ limits, requests }))
    for (const [name, text] of Object.entries(quantities)) {
      const at = `${path}.resources.${list}`;
      const quantity = parseQuantity(text);
      if (!STANDARD.has(name) && !name.includes('/') && !name.startsWith('hugepages-'))
        causes.push(
          field.invalid(`${at}[${name}]`, name, 'must be a standard resource type or fully qualified'),
          field.invalid(`${at}[${name}]`, name, 'must be a standard resource for containers'),
        );
      if (!quantity) causes.push(field.invalid(`${at}[${name}]`, text, QUANTITY));
      else if (quantity.value < 0)
        causes.push(field.invalid(`${at}[${name}]`, text, 'must be greater than or equal to 0'));
      else if (name.includes('/') && !Number.isInteger(quantity.value))
        causes.push(field.invalid(`${at}[${name}]`, text, 'must be an integer'));
    }
  for (const [name, text] of Object.entries(requests)) {
    const limit = limits[name];
    const at = `${path}.resources.requests`;
    if (limit === undefined && name.includes('/'))
      causes.push(
        field.required(`${path}.resources.limits[${name}]`, 'Limit must be set for non overcommitable resources'),
      );
    else if (limit !== undefined && name.includes('/') && amountOf(text) !== amountOf(limit))
      causes.push(field.invalid(at, text, `must be equal to ${name} limit of ${limit}`));
    else if (limit !== undefined && amountOf(text) > amountOf(limit))
      causes.push(field.invalid(at, text, `must be less than or equal to ${name} limit of ${limit}`));
  }
  return causes;
}

function validateRest(spec: PodSpec): FieldCause[] {
  const causes: FieldCause[] = [];
  const { restartPolicy, dnsPolicy, dnsConfig, activeDeadlineSeconds, hostname, tolerations = [] } = spec;
  const oneOf = (path: string, value: string, supported: string[]) => {
    if (!supported.includes(value)) causes.push(field.unsupported(path, value, supported));
  };
  oneOf('spec.restartPolicy', restartPolicy, ['Always', 'OnFailure', 'Never']);
  oneOf('spec.dnsPolicy', dnsPolicy, ['ClusterFirstWithHostNet', 'ClusterFirst', 'Default', 'None']);
  if (dnsPolicy === 'None' && (dnsConfig?.nameservers ?? []).length === 0)
    causes.push(
      field.required('spec.dnsConfig.nameservers', 'must provide at least one DNS nameserver when `dnsPolicy` is None'),
    );
  if (activeDeadlineSeconds !== undefined && (activeDeadlineSeconds < 1 || activeDeadlineSeconds > 2 ** 31 - 1))
    causes.push(
      field.invalid('spec.activeDeadlineSeconds', activeDeadlineSeconds, 'must be between 1 and 2147483647, inclusive'),
    );
  if (spec.terminationGracePeriodSeconds < 0)
    causes.push(
      field.invalid(
        'spec.terminationGracePeriodSeconds',
        spec.terminationGracePeriodSeconds,
        'must be greater than or equal to 0',
      ),
    );
  if (hostname !== undefined && (!label.test(hostname) || hostname.length > 63))
    causes.push(field.invalid('spec.hostname', hostname, LABEL));
  if (spec.ephemeralContainers?.length)
    causes.push(field.forbidden('spec.ephemeralContainers', 'cannot be set on create'));
  for (const [key, value] of Object.entries(spec.nodeSelector ?? {}))
    if (!labelValue.test(value)) causes.push(field.invalid(`spec.nodeSelector.${key}`, value, LABEL_VALUE));
  tolerations.forEach(({ key = '', operator = 'Equal', value = '', effect, tolerationSeconds }, index) => {
    const path = `spec.tolerations[${index}]`;
    if (key === '' && operator !== 'Exists')
      causes.push(
        field.invalid(
          `${path}.operator`,
          operator,
          'operator must be Exists when `key` is empty, which means "match all values and all keys"',
        ),
      );
    if (operator === 'Exists' && value !== '')
      causes.push(field.invalid(`${path}.operator`, value, "value must be empty when `operator` is 'Exists'"));
    if (tolerationSeconds !== undefined && effect !== 'NoExecute')
      causes.push(
        field.invalid(`${path}.effect`, effect ?? '', "effect must be 'NoExecute' when `tolerationSeconds` is set"),
      );
  });
  return causes;
}
