<?php
// What a program behind PHP sees of a request, one JSON line each. The method is what Symfony makes of it when
// enableHttpMethodParameterOverride() was called; the paths are every variable that some framework routes by.
$method = strtoupper($_SERVER['REQUEST_METHOD'] ?? '');
if ($method === 'POST') {
    $override = $_SERVER['HTTP_X_HTTP_METHOD_OVERRIDE'] ?? $_SERVER['HTTP_X_HTTP_METHOD']
        ?? $_SERVER['HTTP_X_METHOD_OVERRIDE'] ?? $_POST['_method'] ?? $_GET['_method'] ?? 'POST';
    if (is_array($override)) {
        $override = (string) reset($override);
    }
    $method = strtoupper($override) ?: 'POST';
}
$names = ['REQUEST_URI', 'PATH_INFO', 'PHP_SELF', 'SCRIPT_NAME', 'HTTP_X_ORIGINAL_URL', 'HTTP_X_REWRITE_URL',
    'HTTP_X_FORWARDED_URI', 'HTTP_X_ORIGINAL_URI', 'UNENCODED_URL'];
$paths = [];
foreach ($names as $name) {
    $value = $_SERVER[$name] ?? '';
    if ($value === '') {
        continue;
    }
    $value = explode('#', explode('?', $value, 2)[0], 2)[0];
    $parsed = preg_match('~^[a-z]+://[^/]*(.*)$~i', $value, $found) ? $found[1] : $value;
    array_push($paths, $parsed, rawurldecode($parsed));
}
$seen = ['method' => $method, 'paths' => array_values(array_unique($paths)),
    'line' => ($_SERVER['REQUEST_METHOD'] ?? '') . ' ' . ($_SERVER['REQUEST_URI'] ?? '')];
$line = json_encode($seen, JSON_INVALID_UTF8_SUBSTITUTE | JSON_UNESCAPED_SLASHES);
file_put_contents(getenv('DIFFERENTIAL_LOG'), $line . "\n", FILE_APPEND | LOCK_EX);
header('Content-Type: text/plain');
echo 'ok';
