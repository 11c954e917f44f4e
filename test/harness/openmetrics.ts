/**
 * A strict parser of the OpenMetrics text format 1.0, written from its ABNF and specification: it rejects text that a
 * lenient scraper accepts.
 */
export interface Family {
  readonly name: string;
  readonly type: string;
  readonly help: string | undefined;
  readonly samples: readonly Sample[];
}

export interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

interface OpenFamily {
  name: string;
  type: string | undefined;
  help: string | undefined;
  unit: string | undefined;
  samples: Sample[];
}

const suffixes: Readonly<Record<string, readonly string[]>> = {
  counter: ['_total', '_created'],
  gauge: [''],
  histogram: ['_bucket', '_count', '_sum', '_created'],
  gaugehistogram: ['_bucket', '_gcount', '_gsum'],
  summary: ['', '_count', '_sum', '_created'],
  info: ['_info'],
  stateset: [''],
  unknown: [''],
};

const nameShape = /^[a-zA-Z_:][a-zA-Z0-9_:]*$/;
const sampleShape = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(\{.*\})? (\S+)(?: (\S+))?$/;
const numberShape = /^(?:[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|[+-]?inf(?:inity)?|nan)$/i;

/** @throws {Error} that names the line and the rule that it breaks. */
export function parseOpenMetrics(text: string): ReadonlyMap<string, Family> {
  if (!text.endsWith('# EOF\n')) throw new Error('the text must end with "# EOF" and a line feed');
  const lines = text.slice(0, -'# EOF\n'.length).split('\n');
  if (lines.pop() !== '') throw new Error('the line before "# EOF" must end with a line feed');
  const families = new Map<string, Family>();
  const series = new Set<string>();
  let open: OpenFamily | undefined;

  const close = () => {
    if (open === undefined) return;
    const { name, type = 'unknown', help, samples } = open;
    const family = { name, type, help, samples };
    if (type === 'histogram') checkHistogram(family);
    families.set(name, family);
  };
  const start = (name: string): OpenFamily => {
    if (open?.name === name) return open;
    close();
    if (families.has(name)) throw new Error(`the family ${name} is interleaved with others`);
    open = { name, type: undefined, help: undefined, unit: undefined, samples: [] };
    return open;
  };

  for (const [i, line] of lines.entries()) {
    try {
      if (line.startsWith('#')) readMetadata(line, start);
      else readSample(line, open, series, start);
    } catch (cause) {
      throw new Error(`line ${i + 1}: ${(cause as Error).message}: ${line}`);
    }
  }
  close();
  return families;
}

function readMetadata(line: string, start: (name: string) => OpenFamily): void {
  const [, kind, name = '', rest = ''] = /^# (TYPE|HELP|UNIT) (\S+)(?: (.*))?$/.exec(line) ?? [];
  if (kind === undefined) throw new Error('neither TYPE, HELP, UNIT nor EOF');
  if (!nameShape.test(name)) throw new Error('not a metric name');
  const family = start(name);
  if (family.samples.length > 0) throw new Error('metadata after samples');
  if (kind === 'TYPE') {
    if (family.type !== undefined) throw new Error('a second TYPE');
    if (!Object.hasOwn(suffixes, rest)) throw new Error('an unknown type');
    if (rest === 'counter' && name.endsWith('_total'))
      throw new Error('the family of a counter has no _total');
    family.type = rest;
  } else if (kind === 'HELP') {
    if (family.help !== undefined) throw new Error('a second HELP');
    family.help = readEscapes(rest);
  } else {
    if (family.unit !== undefined) throw new Error('a second UNIT');
    if (rest !== '' && !name.endsWith(`_${rest}`)) throw new Error('the unit must end the name');
    family.unit = rest;
  }
}

function readSample(
  line: string,
  open: OpenFamily | undefined,
  series: Set<string>,
  start: (name: string) => OpenFamily,
): void {
  const [, name = '', labelText = '', valueText = '', time] = sampleShape.exec(line) ?? [];
  if (name === '') throw new Error('not a sample');
  if (!numberShape.test(valueText)) throw new Error('not a number');
  if (time !== undefined && !numberShape.test(time)) throw new Error('not a timestamp');
  const type = open?.type ?? 'unknown';
  const isOwn = open !== undefined && (suffixes[type] ?? []).some((suffix) => name === open.name + suffix);
  const family = isOwn ? open : start(name);
  if (!isOwn && family.type !== undefined) throw new Error(`${name} is not a sample of a ${family.type}`);
  const labels = readLabels(labelText);
  const value = Number(valueText.replace(/inf(?:inity)?$/i, 'Infinity').replace(/^nan$/i, 'NaN'));
  const key = `${name}${JSON.stringify(Object.entries(labels).sort())}`;
  if (series.has(key)) throw new Error('the same series occurs twice');
  series.add(key);
  const isCount = type === 'counter' || /_(?:bucket|count)$/.test(name.slice(family.name.length));
  if (isCount && !(value >= 0)) throw new Error('a counter is neither negative nor NaN');
  if (name.endsWith('_bucket') && type === 'histogram' && labels.le === undefined) throw new Error('no le');
  family.samples.push({ name, labels, value });
}

function readLabels(text: string): Record<string, string> {
  const labels: Record<string, string> = {};
  if (text === '') return labels;
  let rest = text.slice(1, -1);
  while (rest !== '') {
    const [whole, name = '', value = '', comma] =
      /^([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\[\\n"])*)"(,|$)/.exec(rest) ?? [];
    if (whole === undefined) throw new Error('malformed labels');
    if (Object.hasOwn(labels, name)) throw new Error('a label occurs twice');
    labels[name] = readEscapes(value);
    rest = rest.slice(whole.length);
    if (comma === ',' && rest === '') throw new Error('a comma at the end of labels');
  }
  return labels;
}

function readEscapes(text: string): string {
  return text.replace(/\\([\\n"])/g, (_, one: string) => (one === 'n' ? '\n' : one));
}

/** Buckets are cumulative, end with +Inf, and agree with the count. */
function checkHistogram({ name, samples }: Family): void {
  const groups = Map.groupBy(samples, ({ labels: { le, ...labels } }) => JSON.stringify(labels));
  for (const group of groups.values()) {
    const buckets = group.filter((one) => one.name === `${name}_bucket`);
    const bounds = buckets.map(({ labels }) => Number((labels.le ?? '').replace('+Inf', 'Infinity')));
    const isRising = (numbers: readonly number[]) =>
      numbers.every((n, i) => i === 0 || n >= (numbers[i - 1] ?? 0));
    if (bounds.at(-1) !== Number.POSITIVE_INFINITY) throw new Error(`${name}: no last bucket +Inf`);
    if (!isRising(bounds)) throw new Error(`${name}: bounds do not rise`);
    if (!isRising(buckets.map(({ value }) => value))) throw new Error(`${name}: buckets are not cumulative`);
    const count = group.find((one) => one.name === `${name}_count`);
    if (count?.value !== buckets.at(-1)?.value) throw new Error(`${name}: the count is not that of +Inf`);
    if (!group.some((one) => one.name === `${name}_sum`)) throw new Error(`${name}: no sum`);
  }
}
