<?php
// Every variable that a program behind PHP has of the request's fields, and of its trailers should there be any.
$seen = [];
foreach ($_SERVER as $name => $value) {
    if (str_starts_with($name, 'HTTP_')) {
        $seen[$name] = $value;
    }
}
file_get_contents('php://input');
header('Content-Type: application/json');
echo json_encode($seen, JSON_INVALID_UTF8_SUBSTITUTE);
